"""Decide which acquires and releases of a function can be removed.

The engine assigns to each program point and reference a state: *open* if a removed acquire has
run, and its removed release has not. A solution must fulfil these rules:

1. The state is closed at the entry of the function and where the reference gets its value.
2. An acquire is removed at a change of the state from closed to open.
3. After a release of the reference the state is closed. The release is removed if the state was
   open before.
4. The state is closed at a kept release of any other reference, and at a fence. The other
   reference may point to the same object, or to an object with the last reference.
5. The state is closed at a normal return.
6. The state is equal on all edges into a block, and on all edges out of a block.
7. A raise may close the state without a release if no release and no fence can follow, and the
   function stores no reference in memory. Such an acquire would leak. The same holds for the end
   of the program.

Soundness: take any path of the function. By rules 1, 5 and 6 each removed acquire is followed by
exactly one removed release before a normal return, so the balance of the path is unchanged. By
rules 3 and 4 no release runs while the state is open. The object has a reference before the
removed acquire, because the function acquires only live objects. The object therefore keeps this
reference until the state closes, and from there on the counts equal the counts of the original.
The argument needs one premise: no call between both ends, and no other thread, drops a reference
that the function itself does not hold. In strict mode each call is a fence, and only the part
about threads remains a premise.

All rules are equalities, or have the form "closed here implies closed there". Therefore a greatest
solution exists, and one propagation over the edges finds it: each step is linear in blocks and
events, for each reference, without a limit on depth. One step removes at most one layer of nested
acquires. Steps repeat until no event is removed. Each step works on the result of the step before.

Within a group of releases without a memory access between them, the order does not matter, since
a destructor only uses what its object owns.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from memrt.numba.refprune.classes import Classes
from memrt.numba.refprune.flow import Flow
from memrt.numba.refprune.solver import Cause, Solution, Solver


@dataclass
class Plan:
    """Result of the engine.

    `removed` holds idents of events. In the blocks with the indices `sunk`, all kept releases move
    to the end of the block, in order.
    """

    removed: set[int] = field(default_factory=set)
    sunk: set[int] = field(default_factory=set)
    flow: Flow = field(default_factory=lambda: Flow([]))

    def kept(self, raises: bool = True) -> list[tuple[int, Cause]]:
        """Return the idents of the kept acquires of released values, each with a cause."""
        solver = Solver(self.flow, Classes(self.flow), raises)
        found: list[tuple[int, Cause]] = []
        for ref in self.flow.references():
            found += solver.solve(ref).kept
        return found


def plan(flow: Flow, sink: bool = True, raises: bool = True) -> Plan:
    """Return the events of `flow` that can be removed.

    Parameters
    ----------
    flow : Flow
        The function.
    sink : bool, default True
        Whether releases may move to the end of their blocks.
    raises : bool, default True
        Whether a raise may close the state without a release (rule 7).

    Returns
    -------
    Plan
        The events to remove, and the blocks whose releases move.
    """
    made = Plan(flow=flow.without(()))
    _run(made, raises)
    if sink:
        made.flow = made.flow.sunk()
        made.sunk = _run(made, raises)
    return made


def _run(made: Plan, raises: bool) -> set[int]:
    """Remove events until no step finds more. Return the indices of blocks with a removed event.

    Only these blocks need the order of `flow`. In other blocks the state is closed throughout, or
    the block has no release.
    """
    changed: set[int] = set()
    classes = Classes(made.flow)
    waiting = made.flow.references()
    while waiting:
        solver = Solver(made.flow, classes, raises)
        progressed = False
        for ref in waiting:
            while (solution := solver.solve(ref)).removed:
                progressed = True
                _take(made, solver, solution)
                changed |= solution.changed
        waiting = made.flow.references() if progressed else []
    return changed


def _take(made: Plan, solver: Solver, solution: Solution) -> None:
    made.removed |= solution.removed
    for index in solution.changed:
        block = made.flow.blocks[index]
        block.events = [event for event in block.events if event.ident not in solution.removed]
        solver.refresh(index)
