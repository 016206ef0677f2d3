"""Find the greatest solution of the engine's rules for a reference."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import NamedTuple

from memrt.numba.refprune.classes import Classes
from memrt.numba.refprune.flow import Block, Event, Flow, Kind
from memrt.numba.refprune.gaps import End, Gap, split

_RELEASING = (Kind.RELEASE, Kind.FENCE)
_NO_REF = ""  # no reference has the empty name: for blocks without events of the reference


class Cause(NamedTuple):
    """First reason for a closed state: a rule, the index of a block, and an event or None."""

    rule: str
    block: int
    event: Event | None


@dataclass
class Solution:
    """Events to remove in a step, for a reference.

    `changed` holds the indices of the blocks with a removed event.
    """

    removed: set[int] = field(default_factory=set)
    changed: set[int] = field(default_factory=set)
    kept: list[tuple[int, Cause]] = field(default_factory=list)


class Solver:
    """Solves the rules for the references of a function, one at a time.

    The object is valid as long as :meth:`refresh` is called for each block whose events change.
    """

    def __init__(self, flow: Flow, classes: Classes, raises: bool) -> None:
        self._flow, self._classes = flow, classes
        self._uninvolved: dict[tuple[int, bool], list[Gap]] = {}
        self._own: defaultdict[str, set[int]] = defaultdict(set)
        for index in classes.busy:
            for event in flow.blocks[index].all_events():
                if event.ref is not None:
                    self._own[event.ref].add(index)
        self._dropping = (
            self._blocks_without_later_release() if raises and not flow.stores else set()
        )

    def refresh(self, index: int) -> None:
        """Forget cached facts about a block."""
        for drops in (False, True):
            self._uninvolved.pop((index, drops), None)

    def solve(self, ref: str) -> Solution:
        """Return the greatest solution for `ref` with a release for each removed acquire."""
        state = _State(self._classes, self._flow, self._gaps_of(ref))
        state.close_all()
        while orphans := state.acquires_without_release():
            for block in orphans:
                state.close(self._classes.end[block], Cause("no release", block, None))
            state.propagate()
        return state.solution()

    def _gaps_of(self, ref: str) -> dict[int, list[Gap]]:
        """Return the gaps of all busy blocks, as `ref` sees the blocks."""
        own = self._own[ref]
        gaps = {}
        for index in self._classes.busy:
            drops = index in self._dropping
            if index in own:
                gaps[index] = split(self._flow.blocks[index], ref, drops)
            else:
                gaps[index] = self._uninvolved_gaps(index, drops)
        return gaps

    def _uninvolved_gaps(self, index: int, drops: bool) -> list[Gap]:
        key = (index, drops)
        found = self._uninvolved.get(key)
        if found is None:
            found = self._uninvolved[key] = split(self._flow.blocks[index], _NO_REF, drops)
        return found

    def _blocks_without_later_release(self) -> set[int]:
        """Return the blocks with a raise, and with no release and no fence in later blocks."""
        blocks = self._flow.blocks
        raising = {i for i in self._classes.busy if _has(blocks[i], (Kind.RAISE,))}
        if not raising:
            return set()
        releasing = {i for i in self._classes.busy if _has(blocks[i], _RELEASING)}
        before = self._classes.blocks_reaching(releasing)
        return {i for i in raising if before.isdisjoint(blocks[i].successors)}


def _has(block: Block, kinds: tuple[Kind, ...]) -> bool:
    return any(event.kind in kinds for event in block.all_events())


class _State:
    """States of all classes for one reference. A class is open unless `closed` has a cause."""

    def __init__(self, classes: Classes, flow: Flow, gaps: dict[int, list[Gap]]) -> None:
        self._classes, self._flow, self._gaps = classes, flow, gaps
        self._closed: dict[int, Cause] = {}
        self._implied: defaultdict[int, list[int]] = defaultdict(list)
        self._waiting: list[int] = []

    def close(self, point: int, cause: Cause) -> None:
        if point not in self._closed:
            self._closed[point] = cause
            self._waiting.append(point)

    def propagate(self) -> None:
        while self._waiting:
            point = self._waiting.pop()
            for other in self._implied[point]:
                self.close(other, self._closed[point])

    def close_all(self) -> None:
        """Close the points required by the rules, and propagate."""
        classes = self._classes
        for index, block in enumerate(self._flow.blocks):
            if index == 0 or not classes.predecessors[index]:
                self.close(classes.start[index], Cause("entry", index, None))
            if block.returns:
                self.close(classes.end[index], Cause("return", index, None))
            elif not block.successors and self._flow.stores:
                self.close(classes.end[index], Cause("stores", index, None))
        for index, gaps in self._gaps.items():
            self._constrain(index, gaps)
        self.propagate()

    def _constrain(self, index: int, gaps: list[Gap]) -> None:
        start, end = self._classes.start[index], self._classes.end[index]
        if len(gaps) == 1:
            self._implied[end].append(start)
            if gaps[0].acquire is None:
                self._implied[start].append(end)
            return
        if gaps[0].end is End.BLOCKED:
            self.close(start, Cause("event", index, gaps[0].event))
        if gaps[-1].acquire is None:
            self.close(end, Cause("after", index, None))

    def _is_open(self, point: int) -> bool:
        return point not in self._closed

    def acquires_without_release(self) -> list[int]:
        """Return the blocks with an open state from the end on, and no release on any path."""
        opening = [index for index, gaps in self._gaps.items() if self._opens(index, gaps)]
        if not opening:
            return []
        released = self._points_before_release()
        return [index for index in opening if self._classes.end[index] not in released]

    def _opens(self, index: int, gaps: list[Gap]) -> bool:
        closed_before = len(gaps) > 1 or not self._is_open(self._classes.start[index])
        opens = gaps[-1].acquire is not None and self._is_open(self._classes.end[index])
        return closed_before and opens

    def _points_before_release(self) -> set[int]:
        """Return the open classes with a path of open points to a release."""
        start, end = self._classes.start, self._classes.end
        sources: defaultdict[int, list[int]] = defaultdict(list)
        found: set[int] = set()
        for index, gaps in self._gaps.items():
            if not self._is_open(start[index]):
                continue
            if gaps[0].end is End.CLOSE:
                found.add(start[index])
            elif len(gaps) == 1 and self._is_open(end[index]):
                sources[end[index]].append(start[index])
        waiting = list(found)
        while waiting:
            for point in sources[waiting.pop()]:
                if point not in found:
                    found.add(point)
                    waiting.append(point)
        return found

    def solution(self) -> Solution:
        solution = Solution()
        for index, gaps in self._gaps.items():
            before = set(solution.removed)
            self._remove_in_block(index, gaps, solution)
            if solution.removed != before:
                solution.changed.add(index)
        return solution

    def _remove_in_block(self, index: int, gaps: list[Gap], solution: Solution) -> None:
        is_open = self._is_open(self._classes.start[index])
        for gap in gaps:
            opens = not is_open and gap.acquire is not None and self._continues(index, gap)
            if opens and gap.acquire is not None:
                solution.removed.add(gap.acquire.ident)
            elif not is_open and gap.acquire is not None:
                solution.kept.append((gap.acquire.ident, self._cause(index, gap)))
            if gap.end is End.CLOSE and (is_open or opens) and gap.event is not None:
                solution.removed.add(gap.event.ident)
            is_open = False

    def _continues(self, index: int, gap: Gap) -> bool:
        """Return whether the state can be open at the end of the gap, and is released later."""
        if gap.end is End.OPEN:
            return self._is_open(self._classes.end[index])
        return gap.end is End.CLOSE

    def _cause(self, index: int, gap: Gap) -> Cause:
        if gap.end is End.OPEN:
            return self._closed[self._classes.end[index]]
        rule = "event" if gap.end is End.BLOCKED else "no release"
        return Cause(rule, index, gap.event)
