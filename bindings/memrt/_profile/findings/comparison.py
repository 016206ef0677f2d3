"""Compare two recordings, such as before and after a fix: a verdict, and sums by source line."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from memrt._profile.recording import Document
from memrt._support.units import human_bytes, plural

_AMOUNTS = ("peak", "end", "total")  # live at the highest moment, live at the end, all allocated
_MOST_ROWS = 1000
_MOST_NAMED = 3  # lines in one sentence of the verdict
_LEAST = 64 * 1024
"""Smaller differences count as equal, and lines with fewer bytes are left out."""
_LEAST_PART = 0.01
"""Differences of a smaller part count as equal."""


@dataclass
class _Line:
    """Sums of one source line in one recording."""

    place: str
    """Function, file and line."""
    source: str
    """Text of the line; '' if unknown."""
    sums: dict[str, int] = field(default_factory=lambda: dict.fromkeys(_AMOUNTS, 0))

    @property
    def where(self) -> tuple[str, str]:
        """Function with file, and number of the line."""
        head, _, number = self.place.rpartition(":")
        return (head, number) if head else (self.place, "")

    @property
    def identity(self) -> tuple[str, str]:
        """Function with file, and the text of the line, which stays equal where a line moves."""
        head, number = self.where
        return head, self.source or number


def compare(before: list[Document], after: list[Document]) -> dict[str, Any]:
    """Return the differences of two recordings, for a page.

    Amounts are sums over the processes of a recording.

    Parameters
    ----------
    before, after : list[Document]
        Documents of the recorded process and its children.

    Returns
    -------
    dict
        ``verdict``, sentences, the most important first; ``rows`` of source lines with ``place``,
        ``source``, and before and after in ``peak``, ``end`` and ``total``; ``timelines`` of the
        two recorded processes, pairs of times and live bytes.
    """
    rows = [
        row
        for row in _rows(_lines(before), _lines(after))
        if any(max(row[name]) >= _LEAST for name in _AMOUNTS)
    ]
    rows.sort(key=_weight, reverse=True)
    return {
        "verdict": list(_verdict(before, after, rows)),
        "rows": rows[:_MOST_ROWS],
        "timelines": [
            [documents[0]["timeline"]["t"], documents[0]["timeline"]["live"]]
            for documents in (before, after)
        ],
    }


def _lines(documents: list[Document]) -> list[_Line]:
    found: dict[tuple[str, str], _Line] = {}
    for document in documents:
        texts = {
            call: lines[line - first].strip()
            for call, line, first, lines in document.get("sources", [])
            if first <= line < first + len(lines)
        }
        calls = {site: call for site, call, _ in document.get("user_calls", [])}
        places = {site: place for site, place, _ in document["sites"]}
        for site, amount, size in _amounts(document):
            line = _Line(places.get(site) or "unknown source line", texts.get(calls.get(site), ""))
            found.setdefault(line.where, line).sums[amount] += size
    return list(found.values())


def _amounts(document: Document) -> Iterator[tuple[int, str, int]]:
    """Yield site, name of an amount, and bytes."""
    for site, _, _, size in document["highest"]["rows"]:
        yield site, "peak", size
    for site, _, size in document["total"]:
        yield site, "total", size
    at = {name: i for i, name in enumerate(document["live"]["columns"])}
    for row in document["live"]["rows"]:
        yield row[at["site"]], "end", round(row[at["nbytes"]] * row[at["weight"]])


def _rows(before: list[_Line], after: list[_Line]) -> Iterator[dict[str, Any]]:
    """Pair lines of equal function and text, then changed lines with equal numbers."""
    waiting: defaultdict[tuple[str, str], list[_Line]] = defaultdict(list)
    for old in before:
        waiting[old.identity].append(old)
    unpaired = []
    for new in after:
        if waiting[new.identity]:
            yield _row(waiting[new.identity].pop(0), new)
        else:
            unpaired.append(new)
    left = {old.where: old for lines in waiting.values() for old in lines}
    for new in unpaired:
        yield _row(left.pop(new.where, None), new)
    for old in left.values():
        yield _row(old, None)


def _row(old: _Line | None, new: _Line | None) -> dict[str, Any]:
    shown = new or old
    assert shown is not None
    amounts = {name: [line.sums[name] if line else 0 for line in (old, new)] for name in _AMOUNTS}
    return {"place": shown.place, "source": shown.source, **amounts}


def _weight(row: dict[str, Any]) -> tuple[int, int]:
    """Return the order of rows: the difference at the peak or at the end, then in total."""
    changes = {name: abs(row[name][1] - row[name][0]) for name in _AMOUNTS}
    return max(changes["peak"], changes["end"]), changes["total"]


# --- The verdict. ---


def _verdict(
    before: list[Document], after: list[Document], rows: list[dict[str, Any]]
) -> Iterator[str]:
    error = sum(_stat(documents, "peak_error") for documents in (before, after))
    yield f"The peak {_change(_stat(before, 'peak'), _stat(after, 'peak'), error)}"
    yield f"Memory live at the end {_change(_stat(before, 'live'), _stat(after, 'live'))}"
    least = round(_LEAST_PART * max(_stat(before, "peak"), _stat(after, "peak")))
    for name, when in (("end", "at the end"), ("peak", "at the peak")):
        for sign, word in ((-1, "Smaller"), (1, "Larger")):
            named = _changed(rows, name, sign, least)
            if named:
                yield f"{word} {when}: {'; '.join(named)}."
    old, new = (
        {(each["rule"], _without_line(each["place"])) for each in documents[0].get("findings", [])}
        for documents in (before, after)
    )
    for found, word in ((old - new, "no longer found"), (new - old, "new"), (old & new, "in both")):
        if found:
            texts = sorted(f"{rule} in {place}" if place else rule for rule, place in found)
            yield f"{plural(len(found), 'finding')} {word}: {', '.join(texts)}."


def _stat(documents: list[Document], name: str) -> int:
    return sum(row[2] for document in documents for row in document["stats"] if row[0] == name)


def _change(old: int, new: int, error: int = 0) -> str:
    """Return the end of a sentence about an amount in both recordings."""
    if _is_equal(old, new, error):
        return f"is the same: {human_bytes(old)} and {human_bytes(new)}."
    word = "fell" if new < old else "rose"
    part = abs(new - old) / old if old else 0.0
    percent = f", {part:.1%}" if 0.99 < part < 1 else f", {part:.0%}" if part else ""
    return (
        f"{word} from {human_bytes(old)} to {human_bytes(new)}: {human_bytes(abs(new - old))}"
        f"{percent} {'less' if new < old else 'more'}."
    )


def _is_equal(old: int, new: int, error: int = 0) -> bool:
    return abs(new - old) <= max(_LEAST, error, round(_LEAST_PART * max(old, new)))


def _changed(rows: list[dict[str, Any]], name: str, sign: int, least: int) -> list[str]:
    """Return the lines with the largest changes of one sign, as texts.

    Changes up to `least` bytes are left out.
    """
    found = []
    for row in rows:
        old, new = row[name]
        if sign * (new - old) > 0 and not _is_equal(old, new, least):
            found.append(row)
    found.sort(key=lambda row: -abs(row[name][1] - row[name][0]))
    return [
        f"{row['place']} from {human_bytes(row[name][0])} to {human_bytes(row[name][1])}"
        for row in found[:_MOST_NAMED]
    ]


def _without_line(place: str | None) -> str | None:
    return None if place is None else place.rpartition(":")[0] or place
