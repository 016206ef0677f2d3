"""Compare the outcomes of Numba's tests on Numba's runtime and on memrt: table and verdict."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from pieces import NO_RESULT, Outcomes, differences
from suite import SIDES, Piece, Suite, passed

UNNEEDED = "not run, as all tests of the piece passed on memrt"

# Helpers that compiled code of Numba's tests does not link to, with their callers.
CALLED_ELSEWHERE = {
    "NRT_MemInfo_alloc_safe": "compiled code under NUMBA_DEBUG_NRT",
    "NRT_MemInfo_alloc_safe_aligned": "compiled code under NUMBA_DEBUG_NRT",
    "NRT_MemInfo_alloc_dtor_safe": "compiled code under NUMBA_DEBUG_NRT",
    "NRT_MemInfo_new_varsize": "no caller",
    "NRT_MemInfo_data": "C code of other projects",
    "NRT_MemInfo_release": "the boxes of jitclasses, in C",
    "NRT_get_api": "C code, through the address in c_helpers",
}


@dataclass
class Comparison:
    """The comparison of all pieces with results on both sides, or that passed on memrt."""

    outcomes: dict[str, dict[str, str]] = field(default_factory=lambda: {s: {} for s in SIDES})
    differences: list[str] = field(default_factory=list)
    unproven: list[str] = field(default_factory=list)
    helpers: set[str] = field(default_factory=set)
    tests: int = 0
    processes: int = 0
    blocks: int = 0

    @property
    def is_whole(self) -> bool:
        return self.tests > 0 and len(self.outcomes["memrt"]) == self.tests

    @property
    def is_good(self) -> bool:
        return self.is_whole and not self.differences and not self.unproven and self.blocks > 0


def compare(suite: Suite, pieces: list[Piece]) -> Comparison:
    found = Comparison(tests=sum(len(piece.tests) for piece in pieces))
    for piece in pieces:
        stock, memrt = (suite.results(side, piece) for side in SIDES)
        if stock and memrt:
            _compare_outcomes(stock["outcomes"], memrt["outcomes"], found)
        elif passed(memrt):
            for test, entry in memrt["outcomes"].items():
                found.outcomes["stock"][test] = UNNEEDED
                found.outcomes["memrt"][test] = entry["outcome"]
        else:
            continue
        _examine_proof(memrt, found)
    return found


def _compare_outcomes(stock: Outcomes, memrt: Outcomes, found: Comparison) -> None:
    for test, entry in stock.items():
        found.outcomes["stock"][test] = entry["outcome"]
        found.outcomes["memrt"][test] = memrt.get(test, {}).get("outcome", NO_RESULT)
    found.differences.extend(map(str, differences(stock, memrt)))


def _examine_proof(memrt: dict, found: Comparison) -> None:
    processes = memrt["processes"]
    found.helpers.update(memrt.get("helpers", ()))
    found.processes += len(processes)
    found.blocks += sum(process["alloc"] or 0 for process in processes)
    if not processes or not all(process["on_memrt"] for process in processes):
        found.unproven.append(memrt["piece"])


def missing_helpers(suite: Suite, found: Comparison) -> set[str]:
    """Return helpers that no compiled code of the tests was linked to, but should be."""
    return suite.helpers() - found.helpers - set(CALLED_ELSEWHERE)


def outcome_rows(found: Comparison) -> list[tuple[str, int, int]]:
    """Return how many tests had each outcome, on Numba's runtime and on memrt."""
    stock, memrt = (Counter(found.outcomes[side].values()) for side in SIDES)
    return [(word, stock[word], memrt[word]) for word in sorted({*stock, *memrt})]


def report(suite: Suite, found: Comparison) -> str:
    """Return the comparison as Markdown."""
    compared = len(found.outcomes["memrt"])
    lines = [
        "Numba {numba}, NumPy {numpy}, llvmlite {llvmlite}, Python {python}, memrt {memrt} "
        "(build {build}).".format(**suite.versions),
        "",
        "| outcome | on Numba's runtime | on memrt |",
        "|---|---:|---:|",
        *(f"| {word} | {stock} | {memrt} |" for word, stock, memrt in outcome_rows(found)),
        f"| total | {compared} of {found.tests} | {compared} of {found.tests} |",
        "",
        f"On memrt, {found.processes} processes used Numba's runtime and made {found.blocks:,} "
        f"blocks; {len(found.unproven)} pieces lack the proof that all processes used memrt.",
        "",
        f"Tests with another outcome on memrt: {len(found.differences)}.",
        "",
        *(f"- {difference}" for difference in found.differences),
        *(f"- not proven: {piece}" for piece in found.unproven),
    ]
    return "\n".join(lines).rstrip()
