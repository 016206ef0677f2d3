"""Statistics of the refcount pruner, and reasons for the remaining calls."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from memrt.numba.refprune.engine import Plan
from memrt.numba.refprune.flow import Block, Event, Kind
from memrt.numba.refprune.ir import Body
from memrt.numba.refprune.solver import Cause


class Kept(NamedTuple):
    """A remaining call of ``NRT_incref``, for a value with a release in the function.

    Attributes
    ----------
    function : str
        Name of the function.
    block : str
        Label of the basic block; the entry may have none.
    call : str
        The line of IR.
    reason : str
        Why the call stays.

    Examples
    --------
    >>> from memrt.numba.refprune import Kept
    >>> kept = Kept("f", "entry", "call void @NRT_incref(ptr %p)", "block 'b' returns")
    >>> kept.block
    'entry'
    """

    function: str
    block: str
    call: str
    reason: str


@dataclass
class PruneStats:
    """Number of calls that :func:`memrt.numba.refprune.prune` removed.

    Attributes
    ----------
    functions : int
        Functions with removed calls.
    increfs : int
        Removed calls of ``NRT_incref`` on values.
    decrefs : int
        Removed calls of ``NRT_decref`` on values.
    nulls : int
        Removed calls on the null constant.
    moved : int
        Calls of ``NRT_decref`` that moved to the end of their basic block.
    kept : list of Kept
        Remaining calls, if an explanation was requested.

    Examples
    --------
    >>> from memrt.numba.refprune import PruneStats
    >>> PruneStats(increfs=1, decrefs=2, nulls=1).removed
    4
    """

    functions: int = 0
    increfs: int = 0
    decrefs: int = 0
    nulls: int = 0
    moved: int = 0
    kept: list[Kept] = field(default_factory=list)

    @property
    def removed(self) -> int:
        """Number of all removed calls."""
        return self.increfs + self.decrefs + self.nulls


def add_result(stats: PruneStats, body: Body, made: Plan, moved: int) -> None:
    """Add the result of one function to the statistics."""
    increfs = sum("@NRT_incref(" in body.lines[number] for number in made.removed)
    stats.increfs += increfs
    stats.decrefs += len(made.removed) - increfs
    stats.nulls += len(body.nulls)
    stats.moved += moved
    stats.functions += bool(made.removed or body.nulls)


def kept_in(body: Body, made: Plan, raises: bool) -> list[Kept]:
    """Return the acquires of a function that stay, with reasons."""
    block_of = {
        event.ident: block.name for block in body.flow.blocks for event in block.events
        if event.kind is Kind.ACQUIRE
    }  # fmt: skip
    return [
        Kept(body.name, block_of[ident], body.lines[ident].strip(), _reason(body, cause))
        for ident, cause in made.kept(raises)
    ]


def _reason(body: Body, cause: Cause) -> str:
    place = _place(body.flow.blocks[cause.block])
    if cause.rule == "event" and cause.event is not None:
        return _reason_of_event(body, cause.event, place)
    reasons = {
        "entry": "a path from the entry reaches the same point without the incref",
        "return": f"{place} returns without a decref of the value{_excuse(body)}",
        "stores": f"{place} ends the program, and the function stores references in memory",
        "after": f"{place} releases the value, and continues where the value may be held",
        "no release": "no path from the incref leads to a matching decref",
    }
    return reasons[cause.rule]


def _excuse(body: Body) -> str:
    """Return why a raise does not make up for the missing decref, or "" if none is near."""
    raises = any(event.kind is Kind.RAISE for block in body.flow.blocks for event in block.events)
    text = "; a raise may keep the value, because the function stores references in memory"
    return text if raises and body.flow.stores else ""


def _reason_of_event(body: Body, event: Event, place: str) -> str:
    line = body.lines[event.ident].strip()
    if event.kind is Kind.RELEASE:
        return f"{line!r} in {place} may free the object before the decref"
    if event.kind is Kind.FENCE:
        return f"{line!r} in {place} may release the object"
    return f"{place} gives the value a new object"


def _place(block: Block) -> str:
    return f"block {block.name!r}" if block.name else "the entry block"
