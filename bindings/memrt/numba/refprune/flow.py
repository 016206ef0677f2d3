"""Control flow of a function as input of the refcount pruning engine: blocks of events.

A reference is an SSA value, identified by name. Different references may point to the same
object. The text layer translates LLVM IR to this form, and tests generate it directly.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import NamedTuple


class Kind(IntEnum):
    """Effect of an event on references."""

    ACQUIRE = 0  # adds 1 to the reference count of the object
    RELEASE = 1  # subtracts 1, and frees the object at zero
    FENCE = 2  # may release any reference
    ACCESS = 3  # may read or write the memory of any object
    DEFINE = 4  # gives a value to the reference, before all events of the reference in the block
    RAISE = 5  # stores an exception: the function may leak references on purpose


class Event(NamedTuple):
    """An instruction with an effect on reference counts. `ident` is unique in the function."""

    kind: Kind
    ref: str | None
    ident: int


@dataclass
class Block:
    """A basic block.

    `closing` holds the events of the terminator: a release cannot move behind these events. No
    release of a `pinned` block can move at all. `returns` is true for a block at the normal end
    of the function. A block without successors ends the program, unless `returns` is true.
    """

    name: str
    events: list[Event] = field(default_factory=list)
    closing: tuple[Event, ...] = ()
    successors: tuple[int, ...] = ()
    returns: bool = False
    pinned: bool = False

    def all_events(self) -> list[Event]:
        return [*self.events, *self.closing] if self.closing else self.events


@dataclass
class Flow:
    """The blocks of a function, the entry first.

    `stores` is true if the function may store a reference in memory. The owner of the memory may
    count on an acquire after a raise.
    """

    blocks: list[Block]
    stores: bool = False

    def references(self) -> list[str]:
        """Return the references with an acquire and a release, in order of appearance."""
        acquired = dict.fromkeys(self._operands(Kind.ACQUIRE))
        released = set(self._operands(Kind.RELEASE))
        return [ref for ref in acquired if ref in released]

    def _operands(self, kind: Kind) -> Iterator[str]:
        for block in self.blocks:
            for event in block.events:
                if event.kind is kind and event.ref is not None:
                    yield event.ref

    def without(self, removed: Iterable[int]) -> Flow:
        """Return a copy of the function without the given events."""
        gone = set(removed)
        blocks = [
            replace(block, events=[event for event in block.events if event.ident not in gone])
            for block in self.blocks
        ]
        return Flow(blocks, self.stores)

    def sunk(self) -> Flow:
        """Return a copy with the releases of each block, in order, directly before the terminator.

        A later release never shortens the life of an object.
        """
        blocks = [replace(block, events=_releases_last(block)) for block in self.blocks]
        return Flow(blocks, self.stores)


def _releases_last(block: Block) -> list[Event]:
    if block.pinned:
        return list(block.events)
    kept = [event for event in block.events if event.kind is not Kind.RELEASE]
    return kept + [event for event in block.events if event.kind is Kind.RELEASE]
