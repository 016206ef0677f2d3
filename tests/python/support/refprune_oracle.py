"""Oracle of the refcount pruning engine: explores all paths of a function and of the pruned form.

Both forms run in lockstep over the states of an object. A state holds the references pointing to
the object, the count in the original and the count in the pruned form. Exploration of states covers
paths of any length. A path ends where the original itself uses a freed object.

No library explores such functions: Alive2 needs its own LLVM, and has no model of reference counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from random import Random

from memrt.numba.refprune.engine import Plan
from memrt.numba.refprune.flow import Block, Event, Flow, Kind

COUNT_LIMIT = 6  # states with larger counts behave like smaller ones, and are not explored
FIRST_COUNTS = (1, 2, 3)


class ViolationError(AssertionError):
    """The pruned form is wrong on some path."""


class _InvalidOriginalError(Exception):
    """The original uses a freed object on this path."""


@dataclass(frozen=True)
class State:
    refs: frozenset[str]
    original: int
    pruned: int
    raised: bool = False


def check(flow: Flow, plan: Plan) -> None:
    """Raise ViolationError if the pruned form uses a freed object or changes a balance."""
    for size in range(1, 4):
        for refs in combinations(_references(flow), size):
            _explore(flow, plan, frozenset(refs))


def _references(flow: Flow) -> list[str]:
    events = (event for block in flow.blocks for event in block.all_events())
    return sorted({event.ref for event in events if event.ref is not None})


def _explore(flow: Flow, plan: Plan, refs: frozenset[str]) -> None:
    waiting = [(0, State(refs, count, count)) for count in FIRST_COUNTS]
    seen = set(waiting)
    while waiting:
        index, state = waiting.pop()
        block = flow.blocks[index]
        for after in _run_block(block, index in plan.sunk, plan.removed, state):
            if not block.successors and block.returns:
                _check_return(block, after, flow.stores)
            for successor in block.successors:
                if (successor, after) not in seen and after.original <= COUNT_LIMIT:
                    seen.add((successor, after))
                    waiting.append((successor, after))


def _run_block(block: Block, sinks: bool, removed: set[int], state: State) -> list[State]:
    """Return the states after a block. The pruned form runs a group of releases after the original:
    their order is free, so an error of the original in the group ends the path first.
    """
    sinks = sinks and not block.pinned
    states, late = {state}, []
    for event in block.events:
        if event.kind is Kind.RELEASE:
            late += [event] * (event.ident not in removed)
        elif not sinks:
            states, late = _release_all(states, late), []
        states = _step_all(states, event, removed)
    states = _release_all(states, late)
    for event in block.closing:
        states = _step_all(states, event, removed)
    return list(states)


def _release_all(states: set[State], late: list[Event]) -> set[State]:
    for event in late:
        states = {_release_pruned(each, event) for each in states}
    return states


def _step_all(states: set[State], event: Event, removed: set[int]) -> set[State]:
    found: set[State] = set()
    for state in states:
        try:
            found.update(_step(state, event, event.ident in removed))
        except _InvalidOriginalError:
            continue
    return found


def _step(state: State, event: Event, removed: bool) -> list[State]:
    if event.kind is Kind.ACQUIRE and event.ref in state.refs:
        return [_acquire(state, removed)]
    if event.kind is Kind.RELEASE and event.ref in state.refs:
        return [_release(state)]
    if event.kind in (Kind.ACCESS, Kind.FENCE):
        _check_alive(state)
    if event.kind is Kind.FENCE and state.original > 0:
        fewer = State(state.refs, state.original - 1, state.pruned - 1, state.raised)
        return [state, fewer]
    if event.kind is Kind.DEFINE and event.ref in state.refs:
        return _define(state, event.ref)
    if event.kind is Kind.RAISE:
        return [State(state.refs, state.original, state.pruned, True)]
    return [state]


def _check_alive(state: State) -> None:
    if state.original > 0 >= state.pruned:
        raise ViolationError("use after free")


def _acquire(state: State, removed: bool) -> State:
    if state.original <= 0:
        raise _InvalidOriginalError
    if removed:
        return State(state.refs, state.original + 1, state.pruned, state.raised)
    _check_alive(state)
    return State(state.refs, state.original + 1, state.pruned + 1, state.raised)


def _release(state: State) -> State:
    if state.original <= 0:
        raise _InvalidOriginalError
    return State(state.refs, state.original - 1, state.pruned, state.raised)


def _release_pruned(state: State, event: Event) -> State:
    if event.ref not in state.refs:
        return state
    if state.pruned <= 0:
        raise ViolationError("release of a freed object")
    return State(state.refs, state.original, state.pruned - 1, state.raised)


def _define(state: State, ref: str | None) -> list[State]:
    """Follow the old object through its other references, and the new object through `ref`."""
    assert ref is not None
    rest = state.refs - {ref}
    if state.original != state.pruned and not state.raised and not rest:
        raise ViolationError("a reference gets a new value while counts differ")
    old = [State(rest, state.original, state.pruned, state.raised)] if rest else []
    return old + [State(frozenset((ref,)), n, n, state.raised) for n in FIRST_COUNTS]


def _check_return(block: Block, state: State, stores: bool) -> None:
    if state.original == state.pruned:
        return
    if not state.raised or stores:
        raise ViolationError(f"the balance differs at the end of {block.name}")
    if not 0 < state.pruned < state.original:
        raise ViolationError(f"a raise through {block.name} releases too much")


def random_flow(random: Random) -> Flow:
    """Return a function with up to 8 blocks and 3 references, with loops and dead blocks."""
    count = random.randint(1, 8)
    refs = ["p", "q", "r"][: random.randint(1, 3)]
    idents = iter(range(10_000))
    kinds = [Kind.ACQUIRE] * 6 + [Kind.RELEASE] * 6 + [Kind.ACCESS] * 3
    kinds += random.choice(([], [Kind.FENCE], [Kind.DEFINE], [Kind.RAISE, Kind.RAISE]))
    blocks = [_random_block(random, index, count, refs, kinds, idents) for index in range(count)]
    return Flow(blocks, stores=random.random() < 0.2)


def _random_block(random: Random, index: int, count: int, refs, kinds, idents) -> Block:
    events = []
    for _ in range(random.choice((0, 1, 1, 2, 3, 4))):
        kind = random.choice(kinds)
        named = kind in (Kind.ACQUIRE, Kind.RELEASE, Kind.DEFINE)
        events.append(Event(kind, random.choice(refs) if named else None, next(idents)))
    events.sort(key=lambda event: event.kind is not Kind.DEFINE)  # a value comes before its uses
    closing = (Event(Kind.FENCE, None, next(idents)),) if random.random() < 0.05 else ()
    fanout = random.choice((0, 1, 1, 1, 2, 2, 3)) if index < count - 1 else 0
    forward = [random.randint(index + 1, count - 1) for _ in range(fanout)]
    successors = tuple(random.randrange(1, count) if random.random() < 0.15 else target
                       for target in forward)  # fmt: skip
    returns = not successors and random.random() < 0.85
    pinned = random.random() < 0.05
    return Block(f"b{index}", events, closing, successors, returns, pinned)
