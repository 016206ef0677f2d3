"""Count instructions with callgrind. The counts do not depend on the load of the machine."""

from __future__ import annotations

import json
import re
import subprocess
import sys

from places import OUT, WORKERS, compiled
from subjects import Subject


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
