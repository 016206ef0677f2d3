"""Run worker processes of commands."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import threading
from collections.abc import Iterator, Mapping
from types import FrameType


@contextlib.contextmanager
def _deferred_interrupt() -> Iterator[None]:
    """Handle a Ctrl-C inside the ``with`` statement at its end.

    An exception while a process starts would lose the process. No effect outside of the main
    thread, where Python handles no signals, and where Ctrl-C has no handler of Python.
    """
    handler = signal.getsignal(signal.SIGINT)
    if not callable(handler) or threading.current_thread() is not threading.main_thread():
        yield
        return
    caught: list[tuple[int, FrameType | None]] = []
    signal.signal(signal.SIGINT, lambda number, frame: caught.append((number, frame)))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
    if caught:
        handler(*caught[0])


def _end(process: subprocess.Popen[str]) -> None:
    if process.poll() is None:
        process.kill()
        process.wait()


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
    with contextlib.ExitStack() as stack:
        with _deferred_interrupt():
            process = stack.enter_context(
                subprocess.Popen(
                    command,
                    stdin=None if send is None else subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    text=True,
                    env=env,
                )
            )
            stack.callback(_end, process)
        output, errors = process.communicate(send, timeout)
    return subprocess.CompletedProcess(command, process.returncode, output, errors)
