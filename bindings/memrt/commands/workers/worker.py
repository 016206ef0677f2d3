"""Run worker processes of commands."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping


def run_worker(
    command: list[str],
    *,
    send: str | None = None,
    timeout: float | None = None,
    env: Mapping[str, str] | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run a process to its end and return its output, like :func:`subprocess.run`.

    When Ctrl-C or the time limit ends the wait, the process is killed and reaped first.
    """
    with subprocess.Popen(
        command,
        stdin=None if send is None else subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=env,
    ) as process:
        try:
            output, errors = process.communicate(send, timeout)
        except BaseException:
            process.kill()
            process.wait()
            raise
    return subprocess.CompletedProcess(command, process.returncode, output, errors)
