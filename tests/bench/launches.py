"""Count the instructions of launches of jitted functions, and print a table in Markdown.

usage: launches.py, in the environment of `./dev suites numba`

Each count covers all threads of a process with one thread of Numba.
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace

from counts.instructions import counted_by_name
from places import OUT, WORKERS
from subjects import DEFAULT, MEMRT, Subject

CACHE = {"NUMBA_CACHE_DIR": str(OUT / "numba-launches"), "NUMBA_THREADING_LAYER": "workqueue"}
STOCK = Subject("Numba's runtime", DEFAULT, variables=CACHE)
OUTSIDE = Subject("memrt, no policy", MEMRT, variables=CACHE)
SUBJECTS = (
    STOCK,
    OUTSIDE,
    replace(OUTSIDE, name="in a policy", needs={"within": "policy"}),
    replace(OUTSIDE, name="in a scope", needs={"within": "scope"}),
)


def compile_into_cache() -> list[str]:
    """Compile all functions, and return the names of the cases."""
    job = json.dumps({"subject": STOCK.job()})
    command = [sys.executable, str(WORKERS / "launches.py"), job]
    return json.loads(subprocess.check_output(command, env=STOCK.environment()))


def count(case: str) -> list[float]:
    """Return the instructions of a case per subject.

    Each count has a process of its own, because callgrind mixes the counts of threads between
    dumps."""
    job = {"case": case}
    return [counted_by_name("launches.py", job, each)[case] for each in SUBJECTS]


def table(counts: dict[str, list[float]]) -> str:
    """Return the table of instructions per call, launch or array, by subject."""
    names = " | ".join(subject.name for subject in SUBJECTS)
    lines = [f"| instructions | {names} |", f"|---|{'---:|' * len(SUBJECTS)}"]
    for case, figures in counts.items():
        lines.append(f"| {case} | {' | '.join(f'{figure:,.0f}' for figure in figures)} |")
    return "\n".join(lines)


def main() -> None:
    print(table({case: count(case) for case in compile_into_cache()}))


if __name__ == "__main__":
    main()
