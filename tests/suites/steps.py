"""Run the steps of long commands, each with its output in a log file."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


class StepError(Exception):
    """A failed step. The message names the step and the path of its log, where there is a log."""


def run(
    log: Path,
    *command: object,
    where: Path = ROOT,
    variables: Mapping[str, str] | None = None,
    check: bool = True,
) -> int:
    """Run a command with output to a log file, and return the exit status.

    Parameters
    ----------
    log : Path
        A file below ROOT. The name without the suffix is the name of the step.
    variables : mapping or None
        Environment variables to add or change.
    check : bool
        Raise StepError if the command fails.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("w") as output:
        status = subprocess.run(
            [str(part) for part in command],
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=where,
            env={**os.environ, **(variables or {})},
            check=False,
        ).returncode
    if check and status != 0:
        raise StepError(f"{log.stem} failed: see {log.relative_to(ROOT)}")
    return status
