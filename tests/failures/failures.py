"""Inject a failure at every failure point of every public call: `./dev verify failures`.

    ./dev verify failures            C, Python and Numba; writes its section of docs/reliability.md
    ./dev verify failures --quick    C and Python, fewer failure points, and writes nothing

Failure points are memory requests of memrt, of Python's allocators and of the C library's heap,
and mappings, advice and threads. Each point fails alone, and together with all later points. To
repeat the failures of one call, run tests/failures/meet.py; its libraries are in build/failures.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import memrt
import points
import refusal

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / name) for name in ("numba/upstream", "reliability")]
WORK = ROOT / "build" / "failures"
FILE = WORK / "points"
NUMBA = ("tests/numba/test_failing_helpers.py", "tests/numba/test_out_of_memory.py")
KINDS = {
    "memrt's requests": ("memrt", "memory"),
    "Python's allocators": ("python",),
    "heap": ("heap",),
    "mmap, munmap, mremap, mprotect": ("mmap", "munmap", "mremap", "mprotect"),
    "madvise": ("madvise",),
    "threads": ("thread",),
}
ABOUT = """Failures at each failure point of each public call, by `./dev verify failures`: each
point fails alone, and together with all later points. After each failure the call reported the
documented error. Statistics, live blocks and references were unchanged, and the same call then
worked. Calls without a failure point ran while all requests fail."""


def succeeded(*command: object, env: Mapping[str, str] = os.environ) -> bool:
    environment = {**env, points.VARIABLE: str(FILE)}
    print("→", *command, flush=True)
    status = subprocess.run(list(map(str, command)), cwd=ROOT, env=environment).returncode
    if status != 0:
        print(f"failed with exit status {status}:", *command, file=sys.stderr, flush=True)
    return status == 0


def meet_in_c() -> bool:
    return succeeded(ROOT / "build" / "dev" / "test_creators")


def meet_in_python(part: str, options: list[str]) -> bool:
    command = [sys.executable, Path(__file__).with_name("meet.py"), *options, "--part", part]
    return succeeded(*command, env=refusal.environment(WORK))


def meet_in_numba() -> bool:
    from chore import newest_python

    return succeeded(newest_python(), "-m", "pytest", "-q", *NUMBA)


def meet(quick: bool) -> bool:
    """Run the cases of all languages, a process for each processor."""
    refusal.build(WORK)
    processes = os.cpu_count() or 1
    options = ["--quick"] if quick else []
    parts = [f"{k}/{processes}" for k in range(1, processes + 1)]
    with ThreadPoolExecutor(processes) as pool:
        runs = [pool.submit(meet_in_python, part, options) for part in parts]
        runs.append(pool.submit(meet_in_c))
        if not quick:
            runs.append(pool.submit(meet_in_numba))
    return all(run.result() for run in runs)


def exported() -> set[str]:
    """Return the names of the functions that libmemrt exports."""
    command = ["nm", "-D", "--defined-only", memrt.get_library()]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return {line.split()[-1] for line in lines.splitlines() if " T " in line}


def by_function(found: dict[str, Counter[str]]) -> dict[str, Counter[str]]:
    """Return the failure points of each function, summed over all variants of its cases."""
    functions: dict[str, Counter[str]] = {}
    for case, counts in found.items():
        functions.setdefault(case.partition(",")[0], Counter()).update(counts)
    return functions


def row(function: str, counts: Counter[str]) -> list[object]:
    return [f"`{function}`", *(sum(counts[kind] for kind in kinds) for kinds in KINDS.values())]


def rows(functions: dict[str, Counter[str]]) -> Iterable[list[object]]:
    return (row(name, counts) for name, counts in sorted(functions.items()))


def write_section(functions: dict[str, Counter[str]]) -> None:
    from page import record

    total = sum(functions.values(), Counter())
    facts = {"functions": len(functions), "points": sum(total.values()), "memrt": memrt.__version__}
    record("failure-points", "Failure points", ABOUT, facts, ["function", *KINDS], rows(functions))


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="./dev verify failures",
        description=__doc__,
        formatter_class=argparse.RawTextHelpFormatter,
    )
    parser.add_argument("--quick", action="store_true", help="run less, write no page")
    options = parser.parse_args()
    WORK.mkdir(parents=True, exist_ok=True)
    FILE.unlink(missing_ok=True)
    is_good = meet(options.quick)
    functions = by_function(points.read(FILE))
    unmet = exported() - set(functions)
    print(
        f"{sum(sum(c.values()) for c in functions.values()):,} points of {len(functions)} functions"
    )
    if unmet:
        print("no case for", ", ".join(sorted(unmet)), file=sys.stderr)
    if not is_good or unmet:
        return 1
    if not options.quick:
        write_section(functions)
    return 0


if __name__ == "__main__":
    sys.exit(main())
