"""Each case meets each failure: at every place in turn, once and from there on.

After each: the error is a MemoryError, account, policies, handlers and references are as before,
and the same call then works.
"""

from __future__ import annotations

import gc
import itertools
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass

import memrt
from cases import Case, Ground
from faults import Fault
from memrt import _handlers, _memrt
from memrt.testing import fail_allocations

MOST = 5000  # points of one call: beyond, something goes round and round


class WrongError(AssertionError):
    """What a failure left behind."""


@dataclass(frozen=True)
class Count:
    """How often a case met a fault."""

    case: str
    fault: str
    points: int
    refused: int


def state() -> dict[str, object]:
    """All of the process that a call may have changed."""
    gc.collect()
    stats = memrt.stats()
    return {
        "blocks": stats.alloc - stats.free,
        "meminfos": stats.mi_alloc - stats.mi_free,
        "live bytes": stats.live,
        "adopted bytes": stats.adopted,
        "policies": sorted(policy.name for policy in memrt.policies()),
        "handler": memrt.handler_name(),
        "handlers entered": len(_handlers._stack.get()),
        "enabled": memrt.enabled(),
        "start of threads": threading.Thread.start,
        "tracking": _memrt.tracking_enabled(),
        "plan": fail_allocations._active,
        "options": [(option.name, option.value) for option in memrt.options()],
        "unreported": list(reported),
    }


def references(ground: Ground) -> dict[str, int]:
    """References to each thing that a call is given."""
    held = {name: sys.getrefcount(thing) for name, thing in vars(ground).items()}
    held["mi, its count"] = ground.mi.refcount
    held["wrapped, its count"] = ground.wrapped.refcount
    held["things left"] = len(ground.left)
    return held


reported: list[type | None] = []  # exceptions that nobody could get


def changes(before: dict, after: dict) -> str:
    rows = (f"{key}: {before[key]} -> {after[key]}" for key in before if before[key] != after[key])
    return "; ".join(rows)


def expect_same(what: str, before: dict, after: dict) -> None:
    if before != after:
        raise WrongError(f"{what}: {changes(before, after)}")


def attempt(case: Case, fault: Fault, ground: Ground, nth: int, goes_on: bool) -> bool:
    """Whether the call was refused; nothing that it made or raised is kept."""
    try:
        fault.run(lambda: case.call(ground), nth, goes_on)
    except case.errors:
        if not fault.shows:
            raise WrongError("a MemoryError, though there is another way to go") from None
        return True
    return False


def call_again(case: Case, ground: Ground) -> None:
    try:
        case.call(ground)
    except Exception as error:
        raise WrongError(f"the call does not work afterwards: {error!r}") from error


def meet_on(ground: Ground, case: Case, fault: Fault, nth: int, goes_on: bool) -> bool:
    before, held = state(), references(ground)
    refused = attempt(case, fault, ground, nth, goes_on)
    if refused:
        expect_same("after the refusal", before, state())
        expect_same("references", held, references(ground))
        call_again(case, ground)
    return refused


def meet(case: Case, fault: Fault, nth: int, goes_on: bool) -> bool:
    """Whether the call was refused, with its nth point failing."""
    start = state()
    ground = Ground()
    case.before(ground)
    fault.prepare()
    try:
        refused = meet_on(ground, case, fault, nth, goes_on)
    finally:
        case.after(ground)
    del ground
    expect_same("in the end", start, state())
    return refused


def count(name: str, case: Case, fault: Fault, goes_on: bool) -> Count:
    """Let each point fail in turn, until there is none left."""
    refused = 0
    for nth in itertools.count(1):
        try:
            refused += meet(case, fault, nth, goes_on)
        except Exception as error:
            mode = "from there on" if goes_on else "once"
            raise WrongError(f"{name}, {fault.name} {nth} {mode}: {error}") from error
        if fault.points() < nth:
            return Count(name, fault.name, nth - 1, refused)
        if nth == MOST:
            raise WrongError(f"{name}: more than {MOST} points of {fault.name}")
    raise AssertionError


def both(name: str, case: Case, fault: Fault) -> Iterator[Count]:
    may_crash = case.sets_context and fault.name == "python"
    for goes_on in (False,) if may_crash else (False, True):
        yield count(name, case, fault, goes_on)


def listen() -> None:
    """Exceptions that nobody can get are part of the state."""
    sys.unraisablehook = lambda unraisable: reported.append(unraisable.exc_type)
