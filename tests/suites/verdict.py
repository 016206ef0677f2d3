"""Compare the outcomes of the suites on each side, and format a report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from expected import EXPECTED
from pieces import Difference, differences
from projects import Piece
from results import Results
from sides import STOCK, Side


@dataclass
class Verdict:
    """The outcome of a part on a side, over all pieces."""

    part: str
    side: Side
    outcomes: Counter = field(default_factory=Counter)
    unexpected: list[Difference] = field(default_factory=list)
    expected: list[Difference] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    blocks: int = 0
    used: int = 0
    tests: int = 0
    pieces: int = 0

    @property
    def is_good(self) -> bool:
        return self.tests > 0 and not self.unexpected and not self.faults

    def add(self, piece: Piece, stock: dict, result: dict) -> None:
        outcomes = result["outcomes"]
        self.tests += len(outcomes)
        self.pieces += 1
        self.outcomes.update(entry["outcome"] for entry in outcomes.values())
        if not outcomes:
            self.faults.append(f"{piece.label()}: no test ran ({result['end']})")
        if not self.side.is_stock:
            self._compare(stock["outcomes"], outcomes)
            self._examine(piece, result)

    def _compare(self, stock: dict, memrt: dict) -> None:
        found = list(differences(stock, memrt))
        self.expected += [d for d in found if d.test in EXPECTED]
        self.unexpected += [d for d in found if d.test not in EXPECTED]
        equal = EXPECTED.keys() & stock.keys() - {d.test for d in found}
        self.faults += [
            f"{test}: same outcome as on stock, so expected.py is wrong" for test in equal
        ]

    def _examine(self, piece: Piece, result: dict) -> None:
        """Check that memrt was used with the options of the side, and add faults otherwise."""
        proof = result["proof"]
        if proof is None:
            self.faults.append(f"{piece.label()}: did not finish ({result['end']})")
            return
        self.blocks += proof["alloc"]
        self.used += proof["used"]
        options = {name: proof["options"].get(name) for name in self.side.options}
        if not proof["used"] or options != self.side.options:
            self.faults.append(f"{piece.label()}: must use memrt as {self.side.name}, got {proof}")
        self.faults += [f"{test}: left a handler other than memrt's" for test in proof["lost"]]


def judge(results: Results, pieces: Sequence[Piece], sides: Sequence[Side]) -> list[Verdict]:
    """Return a verdict per part and side, over pieces with results on the side and on stock."""
    found: dict[tuple[str, str], Verdict] = {}
    for piece in pieces:
        stock = results.read(STOCK, piece)
        for side in sides if stock is not None else ():
            result = results.read(side, piece)
            if result is not None:
                verdict = found.setdefault((piece.part, side.name), Verdict(piece.part, side))
                verdict.add(piece, stock, result)
    return list(found.values())


def report(verdicts: Iterable[Verdict]) -> Iterator[str]:
    """Yield the lines of each verdict, followed by differences and faults."""
    for verdict in verdicts:
        words = ", ".join(f"{n} {word}" for word, n in sorted(verdict.outcomes.items()))
        yield f"{verdict.part:20} {verdict.side.name:16} {words}"
        if not verdict.side.is_stock:
            yield (
                f"{'':37} {len(verdict.unexpected)} differences, {len(verdict.expected)} expected;"
                f" {verdict.used} tests made {verdict.blocks:,} blocks on memrt"
            )
        yield from (f"    {difference}" for difference in verdict.unexpected)
        yield from (f"    {fault}" for fault in verdict.faults)
