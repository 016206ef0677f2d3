"""Run pieces of a third-party suite in separate processes, and compare their outcomes.

The outcome of a test is an entry {"outcome": word, "detail": text} under the name of the test.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

Outcomes = Mapping[str, Mapping[str, str]]
T = TypeVar("T")

NO_RESULT = "no result"

_running: set[subprocess.Popen] = set()


class StoppedError(Exception):
    """The whole run was stopped, so the outcome of the piece is meaningless."""


def watched(
    command: Sequence[str | Path], log: Path, limit: float, folder: Path, environment: dict
) -> str:
    """Run a command with its output in a log. Return in words how the command ended.

    After `limit` seconds the command is stopped. Every process left in its session is killed at
    the end. Raises StoppedError if the whole run was stopped.
    """
    with open(log, "w") as output:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=environment,
            stdout=output,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
        _running.add(process)
        try:
            end = f"exit status {process.wait(limit)}"
        except subprocess.TimeoutExpired:
            end = f"stopped after {limit:.0f} s"
        _kill_session(process)  # leftover processes would disturb the next piece
    if process not in _running:
        raise StoppedError
    _running.remove(process)
    return end


def _kill_session(process: subprocess.Popen) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _stop_all() -> None:
    while _running:
        _kill_session(_running.pop())


def run_all(
    work: Sequence[T],
    run_one: Callable[[T], tuple[str, bool]],
    weight: Callable[[T], float] = lambda item: 1,
    jobs: int = 1,
) -> None:
    """Do all the work, with `jobs` threads, and print the progress.

    `run_one` returns a line about the outcome of a piece, and whether the piece ran just now.
    Existing results take no time, so they do not count for the estimate of the time left.
    """
    began = time.monotonic()
    left, ran = sum(map(weight, work)), 0.0
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool, _stopping(pool):
        futures = {pool.submit(run_one, item): item for item in work}
        for done, future in enumerate(concurrent.futures.as_completed(futures), 1):
            line, is_new = future.result()
            left -= weight(futures[future])
            ran += weight(futures[future]) if is_new else 0
            elapsed = time.monotonic() - began
            rest = f", {elapsed * left / ran:.0f} s left" if ran else ""
            print(f"[{done}/{len(work)}, {elapsed:.0f} s{rest}] {line}", flush=True)


@contextlib.contextmanager
def _stopping(pool: concurrent.futures.Executor) -> Iterator[None]:
    """Stop all processes of the run if an exception or SIGTERM ends the run."""
    former = signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        yield
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        _stop_all()
        raise
    finally:
        signal.signal(signal.SIGTERM, former)


def in_words(outcomes: Outcomes) -> str:
    words = Counter(entry["outcome"] for entry in outcomes.values())
    return ", ".join(f"{count} {word}" for word, count in sorted(words.items()))


@dataclass(frozen=True)
class Difference:
    """A test with different outcomes on the two sides."""

    test: str
    before: str
    after: str
    detail: str

    def __str__(self) -> str:
        why = f" ({self.detail})" if self.detail else ""
        return f"{self.test}: {self.before} on stock, {self.after} on memrt{why}"


def differences(stock: Outcomes, memrt: Outcomes) -> Iterator[Difference]:
    nothing = {"outcome": NO_RESULT, "detail": ""}
    for test in (*stock, *(test for test in memrt if test not in stock)):
        before, after = stock.get(test, nothing), memrt.get(test, nothing)
        if before["outcome"] != after["outcome"]:
            detail = (after.get("detail") or before.get("detail") or "").strip().splitlines()
            yield Difference(test, before["outcome"], after["outcome"], "".join(detail[-1:]))
