"""Run each case with each kind of failure: at every failure point in turn, once and from there on.

After each failure, the error must be a MemoryError or another error listed in the case. Accounts,
policies, handlers and references must be as before, and the same call must then work.

No library compares the state of memrt after each failure: libfiu and pytest-based tools only inject
failures.
"""

from __future__ import annotations

import gc
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass

import memrt
from cases import Case, Ground
from faults import Fault
from memrt import _memrt
from memrt._policy import handlers
from memrt.testing import fail_allocations

DENSE = 64  # points of a call before this number all fail in a quick run; of later points a sample
MOST = 5000  # maximum number of failure points of a call; more points mean an endless loop


class WrongError(AssertionError):
    """A call left wrong state behind, or raised a wrong error, after a failure."""


@dataclass(frozen=True)
class Count:
    """Number of failure points of a case for one kind of fault, and of refused calls."""

    case: str
    fault: str
    points: int
    refused: int


def state() -> dict[str, object]:
    """Return all state of the process that a call may have changed."""
    gc.collect()
    stats = memrt.stats()
    return {
        "blocks": stats.alloc - stats.free,
        "meminfos": stats.mi_alloc - stats.mi_free,
        "live bytes": stats.live,
        "adopted bytes": stats.adopted,
        "policies": sorted(policy.name for policy in memrt.debug.policies()),
        "handler": memrt.handler_name(),
        "handlers entered": len(handlers._stack.get()),
        "enabled": memrt.debug.enabled(),
        "thread bootstrap": vars(threading.Thread)["_bootstrap_inner"],
        "tracking": _memrt.tracking_enabled(),
        "fault injection": fail_allocations._active,
        "options": [(option.name, option.value) for option in memrt.debug.options()],
        "unreported": list(reported),
    }


def references(ground: Ground) -> dict[str, int]:
    """Return the reference counts of all arguments of a call."""
    held = {name: sys.getrefcount(thing) for name, thing in vars(ground).items()}
    held["mi, refcount"] = ground.mi.refcount
    held["wrapped, refcount"] = ground.wrapped.refcount
    held["things left"] = len(ground.left)
    return held


reported: list[type | None] = []  # types of unraisable exceptions


def changes(before: dict, after: dict) -> str:
    rows = (f"{key}: {before[key]} -> {after[key]}" for key in before if before[key] != after[key])
    return "; ".join(rows)


def expect_same(what: str, before: dict, after: dict) -> None:
    if before != after:
        raise WrongError(f"{what}: {changes(before, after)}")


def attempt(case: Case, fault: Fault, ground: Ground, nth: int, goes_on: bool) -> bool:
    """Run the call with a fault and return True if it was refused.

    Keeps no reference to the result or the exception. Raises WrongError for a refusal by a fault
    that has a fallback.
    """
    try:
        fault.run(lambda: case.call(ground), nth, goes_on)
    except case.errors:
        if not fault.shows:
            raise WrongError("MemoryError was raised, although memrt has a fallback") from None
        return True
    return False


def call_again(case: Case, ground: Ground) -> None:
    try:
        case.call(ground)
    except Exception as error:
        raise WrongError(f"the repeated call failed: {error!r}") from error


def meet_on(ground: Ground, case: Case, fault: Fault, nth: int, goes_on: bool) -> bool:
    before, held = state(), references(ground)
    refused = attempt(case, fault, ground, nth, goes_on)
    if refused:
        expect_same("after the refusal", before, state())
        expect_same("references", held, references(ground))
        call_again(case, ground)
    return refused


def meet(case: Case, fault: Fault, nth: int, goes_on: bool) -> bool:
    """Run a case with its nth failure point failing, and return True if the call was refused.

    Raises WrongError if the state differs from the state before.
    """
    start = state()
    ground = Ground()
    case.before(ground)
    fault.prepare()
    try:
        refused = meet_on(ground, case, fault, nth, goes_on)
    finally:
        case.after(ground)
    del ground
    expect_same("at the end", start, state())
    return refused


def numbers(quick: bool) -> Iterator[int]:
    """Yield the numbers of the failure points to try: all, or for a quick run a sample."""
    nth = 1
    while True:
        yield nth
        nth += nth // 8 if quick and nth >= DENSE else 1


def count(name: str, case: Case, fault: Fault, goes_on: bool, quick: bool = False) -> Count:
    """Let each failure point of a case fail in turn, until the call has no further point."""
    refused = 0
    for tried, nth in enumerate(numbers(quick)):
        try:
            refused += meet(case, fault, nth, goes_on)
        except Exception as error:
            mode = "from there on" if goes_on else "once"
            raise WrongError(f"{name}, {fault.name} {nth} {mode}: {error}") from error
        if fault.points() < nth:
            return Count(name, fault.name, tried, refused)
        if nth >= MOST:
            raise WrongError(f"{name}: more than {MOST} points of {fault.name}")
    raise AssertionError


def both(name: str, case: Case, fault: Fault, quick: bool) -> Iterator[Count]:
    """Let each failure point fail alone, and together with all later points.

    With `quick`, failure points of Python's allocators, most of all points, fail alone only, and
    calls with many points fail at some of them.
    """
    alone = fault.name == "python" and (quick or case.sets_context)  # the context may crash
    for goes_on in (False,) if alone else (False, True):
        yield count(name, case, fault, goes_on, quick)


def listen() -> None:
    """Record unraisable exceptions in `reported`, which state() includes."""
    sys.unraisablehook = lambda unraisable: reported.append(unraisable.exc_type)
