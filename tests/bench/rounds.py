"""Run subjects in rounds: each round runs all subjects, in a new random order."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from subjects import Subject

One = TypeVar("One")
Progress = Callable[[str], object]  # receives the name of the current measurement


def run_worker(worker: Path, job: dict, subject: Subject, *flags: str) -> dict:
    """Run a job in a new worker process. Return the JSON object on the last line of its output."""
    command = [sys.executable, *flags, str(worker), json.dumps({**job, "subject": subject.job()})]
    output = subprocess.run(
        command, env=subject.environment(), stdout=subprocess.PIPE, text=True, check=True
    ).stdout
    return json.loads(output.splitlines()[-1])


def in_turn(subjects: Iterable[One], rounds: int) -> Iterator[One]:
    """Yield all subjects in every round, so that a disturbance affects all subjects alike."""
    everybody = list(subjects)
    for _ in range(rounds):
        random.shuffle(everybody)
        yield from everybody


class Server:
    """A worker process that stays alive and answers requests."""

    def __init__(self, worker: Path, subject: Subject) -> None:
        self.subject = subject
        self.ways: dict[str, list[str]] = {}  # variants by case, from the last "prepare" request
        self.process = subprocess.Popen(
            [sys.executable, str(worker), json.dumps(subject.job())],
            env=subject.environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ask(self, *request: object):
        """Send one request and return the answer. Raise RuntimeError if the worker has ended."""
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            status = self.process.wait()
            raise RuntimeError(f"the worker of {self.subject.name} ended with status {status}")
        return json.loads(answer)

    def close(self) -> None:
        self.process.communicate()


@contextmanager
def servers(worker: Path, subjects: Iterable[Subject]) -> Iterator[list[Server]]:
    """Start one worker per subject; idle workers use no processor time. Close all at the end."""
    everybody = [Server(worker, subject) for subject in subjects]
    try:
        yield everybody
    finally:
        for server in everybody:
            server.close()
