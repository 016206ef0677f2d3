"""Run the programs under memrt, memray and tracemalloc, and record the reports.

    ./dev suites clients --record     all programs; the figures go into docs/reliability
    profilers.py NAME ...             print the rows of some programs with a planted problem

All profilers see the same, unchanged programs. memray: the largest entries at the highest moment,
as in `memray tree`, and at the end, as in `memray tree` of a recording with `--leaks`. tracemalloc:
the largest entries of a snapshot at the end, by traceback of 25 frames, while the program's
variables exist. The program runs once before without tracing, because imports under tracemalloc
take up to a minute. A profiler leads to the line if the line is in the call stack of one of its
three largest entries.

No library compares profilers: each profiler reads only its own recordings.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from programs import HEALTHY, PLANTED, Planted, findings_of

ROOT = Path(__file__).resolve().parents[3]
COLUMNS = ("program", "library", "planted", "memrt", "memray", "tracemalloc")
HEALTHY_COLUMNS = ("program", "memrt", "memray, largest entry", "tracemalloc, largest entry")

# Each entry of a profiler: bytes, and the call stack as pairs of file and line, innermost first.
Entry = tuple[int, list[tuple[str, int]]]

_TRACEMALLOC = """
import json, sys, tracemalloc
script = sys.argv[1]
sys.argv = [script]
program = compile(open(script).read(), script, "exec")
exec(program, {"__name__": "__main__", "__file__": script})
tracemalloc.start(25)
scope = {"__name__": "__main__", "__file__": script}
exec(program, scope)
snapshot = tracemalloc.take_snapshot()
tracemalloc.stop()
found = snapshot.statistics("traceback")[:3]
print("\\n" + json.dumps([[each.size, [[f.filename, f.lineno] for f in reversed(each.traceback)]]
                   for each in found]))
"""

_MEMRAY = """
import json, sys
from memray import FileReader
reader = FileReader(sys.argv[1])
if sys.argv[2] == "leaks":
    records = reader.get_leaked_allocation_records(merge_threads=True)
else:
    records = reader.get_high_watermark_allocation_records(merge_threads=True)
top = sorted(records, key=lambda record: -record.size)[:3]
print(json.dumps([[each.size, [[file, line] for _, file, line in each.stack_trace()]]
                  for each in top]))
"""


def run(*command: str | Path) -> str:
    """Run a command, and return its output."""
    return subprocess.run(
        [sys.executable, *command], check=True, capture_output=True, text=True, timeout=300
    ).stdout


def entries_of_memray(script: Path, folder: Path) -> list[Entry]:
    """Return the largest entries at the peak, and the largest at the end."""
    file = folder / f"{script.stem}.bin"
    run("-m", "memray", "run", "--quiet", "--output", file, script)
    peak, end = (json.loads(run("-c", _MEMRAY, file, part)) for part in ("peak", "leaks"))
    return [*peak, *end]


def entries_of_tracemalloc(script: Path, folder: Path) -> list[Entry]:
    """Return the largest entries at the end."""
    return json.loads(run("-c", _TRACEMALLOC, script).rpartition("\n[")[2].join(["[", ""]))


def entry_text(program: Planted, entries: Sequence[Entry]) -> str:
    """Return the first entry with the planted line, or the largest entry, and its innermost line.

    `entries` are three entries of each moment."""
    here = (program.script.name, program.line)
    with_line = [
        number
        for number, (_, stack) in enumerate(entries)
        if here in [(Path(file).name, line) for file, line in stack]
    ]
    number = min(with_line, key=lambda index: index % 3, default=0)
    found = f"yes, entry {number % 3 + 1}" if with_line else "no"
    return f"{found}: {size_and_line(entries[number])}"


def size_and_line(entry: Entry) -> str:
    """Return the size of an entry, and its innermost line."""
    size, stack = entry
    file, line = stack[0] if stack else ("no Python line", 0)
    short = "/".join(Path(file).parts[-2:])
    where = f"`{short}:{line}`" if line else short
    return f"{size / 2**20:.1f} MiB, {where}"


def finding_text(program: Planted, findings: list[dict[str, Any]]) -> str:
    if not findings:
        return "no: no finding"
    first = findings[0]
    holder = "" if first["holder"] is None else f", held by {first['holder']}"
    place = Path(str(first["place"])).name
    found = "yes" if program.is_found_by(first) else "no"
    return f"{found}: {first['rule']}, `{place}`{holder}"


def rows_of(programs: Iterable[Planted]) -> list[list[str]]:
    """Return a row of the table for each program."""
    rows = []
    for program in programs:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            found = findings_of(program.script, folder)
            memray = entries_of_memray(program.script, folder)
            tracemalloc = entries_of_tracemalloc(program.script, folder)
        texts = (entry_text(program, memray), entry_text(program, tracemalloc))
        holder = "" if program.holder is None else f", {program.holder}"
        planted = f"{program.rule}, line {program.line}{holder}"
        head = [program.name, program.library, planted]
        rows.append([*head, finding_text(program, found), *texts])
        print(" | ".join(rows[-1]), flush=True)
    return rows


def rows_of_healthy() -> list[list[str]]:
    """Return a row of the table for each program without a problem."""
    rows = []
    for script in HEALTHY:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            rules = [str(finding["rule"]) for finding in findings_of(script, folder)]
            largest = (
                entries_of_memray(script, folder)[0],
                entries_of_tracemalloc(script, folder)[0],
            )
        found = ", ".join(rules) or "no finding"
        rows.append([script.stem, found, *map(size_and_line, largest)])
        print(" | ".join(rows[-1]), flush=True)
    return rows


def main(names: list[str]) -> int:
    rows = rows_of(each for each in PLANTED if not names or each.name in names)
    if not names:
        record(rows, rows_of_healthy())
    return 0


def record(rows: list[list[str]], healthy: list[list[str]]) -> None:
    """Write the sections `clients/profilers` and `clients/healthy` of docs/reliability.md."""
    sys.path.insert(0, str(ROOT / "tests" / "reliability"))
    import importlib.metadata

    import page

    page.record(
        "clients/healthy",
        "Healthy programs beside memray and tracemalloc",
        "Programs without a memory problem, over the same libraries. memrt must have no finding."
        " memray and tracemalloc list entries of every program, and a person decides whether an"
        " entry is a problem: the largest entry at the peak, and at the end."
        " `./dev suites clients --record`",
        {"programs with a finding of memrt": sum(row[1] != "no finding" for row in healthy)},
        HEALTHY_COLUMNS,
        healthy,
    )
    counts = {
        f"{name}, of {len(rows)}": sum(row[column].startswith("yes") for row in rows)
        for column, name in enumerate(COLUMNS[3:], 3)
    }
    versions = ", ".join(
        f"{name} {importlib.metadata.version(name)}"
        for name in ("memray", "numpy", "pandas", "scikit-learn", "xarray", "jax", "numba")
    )
    page.record(
        "clients/profilers",
        "Findings beside memray and tracemalloc",
        "Programs with a planted memory problem, in the idioms of other libraries. memrt: the first"
        " finding is right if its rule, line and holder are the planted ones. memray: the three"
        " largest entries at the peak, and at the end; an entry leads to the line if the line is in"
        " its call stack. tracemalloc: the three largest entries at the end, by traceback. Each"
        " cell shows the innermost line of the entry. memray and tracemalloc name no holders."
        " `./dev suites clients --record`",
        {"versions": versions, **counts},
        COLUMNS,
        rows,
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
