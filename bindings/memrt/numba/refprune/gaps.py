"""Split a block at the events that close the state of a reference."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

from memrt.numba.refprune.flow import Block, Event, Kind


class End(IntEnum):
    """Kind of the event at the end of a gap."""

    OPEN = 0  # the block ends: the state goes on to the successors
    CLOSE = 1  # a release of the reference: the state may be open before
    DROP = 2  # a raise: may close the state without a release
    BLOCKED = 3  # the state must be closed before


class Gap(NamedTuple):
    """Events between two closing events.

    `acquire` is the first acquire of the reference in the gap. `event` ends the gap.
    """

    acquire: Event | None
    end: End
    event: Event | None


def split(block: Block, ref: str, drops: bool) -> list[Gap]:
    """Return the gaps of a block for a reference. The last gap has the end OPEN.

    With `drops`, no release and no fence follows in later blocks. A raise may then close the
    state, unless a release or fence follows in the block.
    """
    events = block.all_events()
    gaps: list[Gap] = []
    acquire: Event | None = None
    position = 0
    while position < len(events):
        event = events[position]
        group = _release_group(events, position)
        position += max(len(group), 1)
        if event.kind is Kind.ACQUIRE and event.ref == ref:
            acquire = acquire or event
            continue
        closing = _closing(event, group, ref, drops and not _releases(events[position:]))
        if closing is not None:
            gaps.append(Gap(acquire, *closing))
            acquire = None
    return [*gaps, Gap(acquire, End.OPEN, None)]


def _release_group(events: list[Event], position: int) -> list[Event]:
    end = position
    while end < len(events) and events[end].kind is Kind.RELEASE:
        end += 1
    return events[position:end]


def _closing(event: Event, group: list[Event], ref: str, drops: bool) -> tuple[End, Event] | None:
    if group:
        own = next((each for each in group if each.ref == ref), None)
        return (End.CLOSE, own) if own else (End.BLOCKED, event)
    if event.kind is Kind.FENCE or (event.kind is Kind.DEFINE and event.ref == ref):
        return End.BLOCKED, event
    if event.kind is Kind.RAISE and drops:
        return End.DROP, event
    return None


def _releases(events: list[Event]) -> bool:
    return any(event.kind in (Kind.RELEASE, Kind.FENCE) for event in events)
