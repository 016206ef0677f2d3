"""Run programs under a time limit. A failed run is reported with the command to repeat the run."""

from __future__ import annotations

import argparse
import math
import os
import select
import shlex
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build" / "dev"


@dataclass(frozen=True)
class Run:
    """A command with its time limit in seconds, and the changes to the environment."""

    name: str
    command: Sequence[str]
    limit: float
    variables: Mapping[str, str] = field(default_factory=dict)
    removed: tuple[str, ...] = ()  # prefixes of variables that the run does not inherit

    @property
    def environment(self) -> dict[str, str]:
        kept = {k: v for k, v in os.environ.items() if not k.startswith(self.removed)}
        return {**kept, **self.variables}

    def __str__(self) -> str:
        return shlex.join([*(f"{k}={v}" for k, v in self.variables.items()), *self.command])


class FailedRunError(Exception):
    """A run failed, hung or did nothing. The message has the output and the command."""

    def __init__(self, run: Run, outcome: str, output: str) -> None:
        super().__init__(f"{output.rstrip()}\n\n{run.name} {outcome}; to repeat:\n{run}")


class GrowthError(Exception):
    """The memory of a process does not stay flat."""


@dataclass(frozen=True)
class Report:
    """Figures of runs without a failure: a line for the terminal, and a section of the page.

    `section` is empty if the runs were too short for recorded figures.
    """

    line: str
    section: str = ""
    title: str = ""
    about: str = ""
    facts: Mapping[str, object] = field(default_factory=dict)
    columns: Sequence[str] = ()
    rows: Iterable[Sequence[object]] = ()


def parts_of(process: subprocess.Popen, limit: float) -> Iterator[bytes]:
    """Yield the output as the process prints. Raises TimeoutError after `limit` seconds."""
    end = time.monotonic() + limit
    while select.select([process.stdout], [], [], max(0, end - time.monotonic()))[0]:
        part = os.read(process.stdout.fileno(), 1 << 16)
        if not part:
            process.wait()
            return
        yield part
    raise TimeoutError


def lines_of(run: Run) -> Iterator[str]:
    """Start a run and yield each line of the output as soon as the line is printed.

    A failed or hung run raises FailedRunError.
    """
    output = b""
    shown = 0
    with subprocess.Popen(
        run.command,
        env=run.environment,
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        bufsize=0,
    ) as process:
        try:
            for part in parts_of(process, run.limit):
                output += part
                whole = output.rfind(b"\n") + 1
                yield from output[shown:whole].decode(errors="replace").splitlines()
                shown = max(shown, whole)
        except TimeoutError:
            raise FailedRunError(run, "hangs", output.decode(errors="replace")) from None
        finally:
            process.kill()
    if process.returncode != 0:
        raise FailedRunError(run, "fails", output.decode(errors="replace"))
    yield from output[shown:].decode(errors="replace").splitlines()


def output_of(run: Run) -> str:
    """Start a run and return its output. A failed or hung run raises FailedRunError."""
    return "\n".join(lines_of(run))


def number(kind: type, least: float, most: float = math.inf) -> Callable[[str], float]:
    """Return an argparse type for numbers from `least` to `most`."""

    def number(text: str) -> float:
        value = kind(text)
        if not least <= value <= most:
            limits = f"{least} or more" if most == math.inf else f"from {least} to {most}"
            raise argparse.ArgumentTypeError(f"must be {limits}, got {value}")
        return value

    return number
