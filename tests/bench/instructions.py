"""Count instructions with callgrind. The counts do not depend on the load of the machine."""

from __future__ import annotations

import json
import re
import subprocess
import sys

from places import OUT, WORKERS, compiled
from result import Group
from subjects import Subject

COUNT = 100_000  # blocks; enough to make the ctypes call of the loop negligible


def counted(job: dict, subject: Subject) -> float:
    """Return the instructions per block of a loop."""
    loops, counting = (
        str(compiled(WORKERS / "native" / name)) for name in ("loops.c", "counting.c")
    )
    whole = {**job, "loops": loops, "count": COUNT, "counting": counting, "subject": subject.job()}
    command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={OUT}/callgrind.out"]
    command += ["--instr-atstart=no"]
    command += [sys.executable, "-I", str(WORKERS / "blocks.py"), json.dumps(whole)]
    report = subprocess.run(
        command, env=subject.environment(), capture_output=True, text=True, check=True
    ).stderr
    return int(re.search(r"Collected : (\d+)", report)[1]) / COUNT


def counted_by_name(worker: str, job: dict, subject: Subject, *flags: str) -> dict[str, float]:
    """Return instructions per iteration, by the names under which a worker dumped its counts."""
    out = OUT / f"callgrind-{subject.name}"
    for old in OUT.glob(f"{out.name}.*"):
        old.unlink()
    counting = str(compiled(WORKERS / "native" / "counting.c"))
    command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}"]
    command += ["--instr-atstart=no", sys.executable, *flags, str(WORKERS / worker)]
    command.append(json.dumps({**job, "counting": counting, "subject": subject.job()}))
    run = subprocess.run(
        command, env=subject.environment(), capture_output=True, text=True, check=True
    )
    iterations = json.loads(run.stdout.splitlines()[-1])
    dumps = [dump.read_text() for dump in OUT.glob(f"{out.name}.*")]
    found = [
        (
            re.search(r"Client Request: (.*)", dump),
            re.search(r"^(?:summary|totals): (\d+)", dump, re.MULTILINE),
        )
        for dump in dumps
    ]
    spent = {name[1]: int(total[1]) for name, total in found if name and total}
    return {name: spent[name] / count for name, count in iterations.items()}


def instructions(title: str, job: dict, subjects: list[Subject]) -> Group:
    """Return a group with the instructions per block of a loop, for each subject."""
    about = "Instructions to allocate, touch and free one block of 64 B, counted by callgrind."
    group = Group(title, about, "instructions", "glibc")
    for subject in subjects:
        group.case("64 B, one live").add(subject.name, counted(job, subject))
    return group
