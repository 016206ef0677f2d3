"""Try memrt's own allocators and the test doubles against every clause of the conformance kit.

Writes the section "conformance" of docs/reliability.md. With --quick, memrt's own allocators run
under the default setting only, and nothing is written.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from pathlib import Path

from allocators import OWN, RIGHT, SETTINGS, WRONG, broken, environment, verdicts
from building import compile_c
from page import record


def row(name: str, found: dict[str, tuple[str, str]]) -> tuple[object, ...]:
    counts = Counter(verdict for verdict, _ in found.values())
    bad = ", ".join(f"{clause} ({verdict})" for clause, verdict in broken(found).items())
    return name, counts["pass"], counts["not applicable"], bad or "none"


def try_all(folder: Path, settings: tuple[str, ...]) -> tuple[list[tuple[object, ...]], int]:
    """Return a row for each allocator and setting, and the number of unexpected rows."""
    own, doubles = (compile_c(folder, source, shared=True) for source in ("own.c", "doubles.c"))
    subjects = [(own, symbol, setting, {}) for setting in settings for symbol in OWN]
    subjects += [(doubles, symbol, "", {}) for symbol in RIGHT]
    subjects += [(doubles, symbol, "", dict([wrong])) for symbol, wrong in WRONG.items()]
    rows, bad = [], 0
    for library, symbol, setting, expected in subjects:
        with environment(setting):
            found = verdicts(library, symbol)
        rows.append(row(f"`{symbol}`{f' under `{setting}`' if setting else ''}", found))
        if broken(found) != expected:
            bad += 1
            print(f"unexpected verdicts: {symbol} {setting}: {found}")
        print(*rows[-1], sep="  ", flush=True)
    return rows, bad


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="./dev verify conformance", description=__doc__.split("\n")[0]
    )
    parser.add_argument("--quick", action="store_true", help="run fewer settings, write no page")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        rows, bad = try_all(Path(folder), SETTINGS[:1] if options.quick else SETTINGS)
    if bad:
        print(f"{bad} of {len(rows)} subjects have unexpected verdicts")
        return 1
    if not options.quick:
        record(
            "conformance",
            "Conformance of allocators",
            "Verdicts of `python -m memrt check-allocator`. memrt's allocators (`own_`) and the "
            "correct test doubles break no clause. For each clause, a wrong test double (`wrong_`) "
            "breaks exactly this clause. `./dev verify conformance`",
            {"subjects": len(rows), "clauses tried": len(rows) * sum(rows[0][1:3])},
            ("allocator", "clauses met", "not applicable", "broken"),
            rows,
        )
    print(f"all {len(rows)} subjects have the expected verdicts")
    return 0


if __name__ == "__main__":
    sys.exit(main())
