"""``python -m memrt diff``: compare two event traces."""

from __future__ import annotations

import argparse
import json
from typing import NamedTuple

import memrt
from memrt._support.units import human_bytes
from memrt._trace.reader import Trace
from memrt.commands.convert import opened
from memrt.commands.output.table import text_table

HELP = "Compare two traces by allocation site and by scope."

EXAMPLES = """\
Rows are sorted by the difference of live bytes at the peak. An allocation site is a function, a
file and a line. If lines were inserted between the two runs, the lines below count as different
sites; --no-lines adds up by function instead.

exit status: 0; 2 if a trace cannot be read

examples:
  python -m memrt diff before.memtrace after.memtrace
  python -m memrt diff before.memtrace after.memtrace --by scope --limit 50
  python -m memrt diff before.memtrace after.memtrace --no-lines --json
"""

_TITLES = {"place": "By allocation site", "scope": "By scope", "policy": "By policy"}


class Difference(NamedTuple):
    """Sums of one allocation site, scope or policy in two traces."""

    name: str
    allocations: tuple[int, int]
    total: tuple[int, int]
    at_peak: tuple[int, int]
    at_end: tuple[int, int]

    @property
    def growth(self) -> int:
        """Return the increase of live bytes at the peak, from the first trace to the second."""
        return self.at_peak[1] - self.at_peak[0]


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("before", metavar="A", help="file that `python -m memrt trace` wrote")
    parser.add_argument("after", metavar="B", help="second file")
    parser.add_argument("--by", action="append", choices=list(_TITLES),
                        help="table to print, place: allocation sites; may be repeated "
                        "(default: place and scope)")  # fmt: skip
    parser.add_argument("--no-lines", action="store_true", help="add up by function, not by line")
    parser.add_argument("--limit", type=int, default=20, metavar="N",
                        help="maximum rows of a table (default 20)")  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print all rows as JSON")


def execute(arguments: argparse.Namespace) -> None:
    before, after = opened(arguments.before), opened(arguments.after)
    found = {
        by: differences(before, after, by, not arguments.no_lines)
        for by in arguments.by or ("place", "scope")
    }
    if arguments.json:
        print(json.dumps(_as_json(before, after, found), indent=2))
    else:
        print(_as_text(before, after, found, max(arguments.limit, 1)))


def differences(before: Trace, after: Trace, by: str, lines: bool = True) -> list[Difference]:
    """Return the differences of two traces, ordered by difference at the peak, largest first."""
    sides = [_sums(trace, by, lines) for trace in (before, after)]
    rows = [
        Difference(name, *zip(*(side.get(name, (0, 0, 0, 0)) for side in sides), strict=True))
        for name in dict.fromkeys([*sides[0], *sides[1]])
    ]
    return sorted(rows, key=lambda row: (-abs(row.growth), -max(row.total), row.name))


def _sums(trace: Trace, by: str, lines: bool) -> dict[str, tuple[int, ...]]:
    sums: dict[str, tuple[int, ...]] = {}
    for usage in trace.usage(by):
        name = usage.name if lines or by != "place" else _without_line(usage.name)
        known = sums.get(name, (0, 0, 0, 0))
        sums[name] = tuple(a + b for a, b in zip(known, usage[1:], strict=True))
    return sums


def _without_line(place: str) -> str:
    name, colon, line = place.rpartition(":")
    return name if colon and line.isdigit() else place


def _as_json(
    before: memrt.debug.Trace, after: memrt.debug.Trace, found: dict[str, list[Difference]]
) -> dict[str, object]:
    tables = {by: [row._asdict() for row in rows] for by, rows in found.items()}
    return {"peak": (before.peak, after.peak), "events": (len(before), len(after)), **tables}


def _as_text(
    before: memrt.debug.Trace,
    after: memrt.debug.Trace,
    found: dict[str, list[Difference]],
    limit: int,
) -> str:
    growth = after.peak - before.peak
    parts = [
        f"peak: {human_bytes(before.peak)} and {human_bytes(after.peak)}, {_signed(growth)}; "
        f"events: {len(before):,} and {len(after):,}"
    ]
    for by, rows in found.items():
        differing = [row for row in rows if len(set(row.total)) > 1 or row.growth]
        shown = f", the first {limit} of {len(differing):,}" if len(differing) > limit else ""
        parts.append(f"\n{_TITLES[by]}{shown}:")
        parts.append(_table(differing[:limit]) if differing else "  nothing differs")
    return "\n".join(parts)


def _table(rows: list[Difference]) -> str:
    header = ("at peak", "A", "B", "total", "allocations", "")
    cells = [
        (
            _signed(row.growth),
            human_bytes(row.at_peak[0]),
            human_bytes(row.at_peak[1]),
            _signed(row.total[1] - row.total[0]),
            f"{row.allocations[1] - row.allocations[0]:+,}",
            row.name,
        )
        for row in rows
    ]
    return text_table([header, *cells], right=range(5))


def _signed(count: int) -> str:
    return f"{'-' if count < 0 else '+'}{human_bytes(abs(count))}"
