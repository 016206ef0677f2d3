"""Instructions counted by callgrind: figures that need no quiet machine."""

from __future__ import annotations

import json
import re
import subprocess
import sys

from places import OUT, WORKERS, compiled
from result import Group
from subjects import Subject

FEW, MANY = 1000, 101_000  # the difference of two runs is free of what starts and ends a process


def collected(job: dict, subject: Subject, count: int) -> int:
    """Instructions of a whole process that runs a loop `count` times."""
    whole = {**job, "loops": str(compiled(WORKERS / "loops.c")), "count": count}
    whole["subject"] = subject.job()
    command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={OUT}/callgrind.out"]
    command += [sys.executable, "-I", str(WORKERS / "blocks.py"), json.dumps(whole)]
    report = subprocess.run(
        command, env=subject.environment(), capture_output=True, text=True, check=True
    ).stderr
    return int(re.search(r"Collected : (\d+)", report)[1])


def instructions(title: str, job: dict, subjects: list[Subject]) -> Group:
    """Instructions of one block of a loop."""
    about = "Instructions of one block of 64 B, made, touched and given back, by callgrind."
    group = Group(title, about, "instructions", "glibc")
    for subject in subjects:
        counts = [collected(job, subject, count) for count in (FEW, MANY)]
        group.case("64 B, one live").add(subject.name, (counts[1] - counts[0]) / (MANY - FEW))
    return group
