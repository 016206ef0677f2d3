"""Instructions counted by callgrind: figures that need no quiet machine."""

from __future__ import annotations

import json
import re
import subprocess
import sys

from places import OUT, WORKERS, compiled
from result import Group
from subjects import Subject

COUNT = 100_000  # blocks: what ctypes needs to call the loop is little beside them


def counted(job: dict, subject: Subject) -> float:
    """Instructions of one block in a loop."""
    loops, counting = (str(compiled(WORKERS / name)) for name in ("loops.c", "counting.c"))
    whole = {**job, "loops": loops, "count": COUNT, "counting": counting, "subject": subject.job()}
    command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={OUT}/callgrind.out"]
    command += ["--instr-atstart=no"]
    command += [sys.executable, "-I", str(WORKERS / "blocks.py"), json.dumps(whole)]
    report = subprocess.run(
        command, env=subject.environment(), capture_output=True, text=True, check=True
    ).stderr
    return int(re.search(r"Collected : (\d+)", report)[1]) / COUNT


def instructions(title: str, job: dict, subjects: list[Subject]) -> Group:
    """Instructions of one block of a loop."""
    about = "Instructions of one block of 64 B, made, touched and given back, by callgrind."
    group = Group(title, about, "instructions", "glibc")
    for subject in subjects:
        group.case("64 B, one live").add(subject.name, counted(job, subject))
    return group
