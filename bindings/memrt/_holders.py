"""Who holds a buffer: the objects that keep it alive, and what refers to them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from memrt import _memrt
from memrt._live import LiveBuffer
from memrt._naming import Referrer, refer, type_name
from memrt._sites import Place, Site, place_of, site_of
from memrt._units import human_bytes

# In the order of memrt_link_t.
_LINKS = (
    *("none", "array", "block", "memoryview", "buffer", "strides", "meminfo", "jitted", "capsule"),
)
_HOLD = ("block", "meminfo", "jitted", "capsule")  # those with a reference of the core's
_PLUMBING = ("buffer", "strides", "meminfo", "jitted", "capsule")
_KINDS = {1: "inline", 2: "adopted", 3: "resizable", 4: "block"}
_NAMED = {1: "reference", 2: "export"}
_LINES = 20  # of one branch of a tree

_shape = np.ndarray.shape.__get__
_dtype = np.ndarray.dtype.__get__


@dataclass(frozen=True)
class NamedReference:
    """References of C code that were taken under one name."""

    name: str
    """The name."""
    kind: str
    """'reference', or 'export' for what was handed to another library."""
    count: int
    """How many there are."""
    thread: int
    """The operating system's number of the thread that took the first."""
    age: float
    """Seconds since then."""


@dataclass(frozen=True)
class Holder:
    """A Python object that keeps a buffer alive."""

    kind: str
    """'block' for an array that owns the buffer, 'array' for another, 'memoryview', 'meminfo' for a
    memrt.MemInfo, 'capsule', 'jitted' for what arrays of jitted functions lie over, and, between
    these, 'buffer' for what memoryviews share and 'strides' for what as_strided leaves."""
    text: str
    """What it is, in words."""
    nbytes: int | None
    """Bytes that it addresses; None where it is no array or memoryview."""
    references: int
    """References to the object."""
    referrers: tuple[Referrer, ...]
    """What refers to it; of very many, some."""
    holders: tuple[Holder, ...]
    """Objects that take their memory from it, and so refer to it."""
    unexplained: int
    """References that nothing was found for: of C code, of expressions that are being evaluated."""
    more: int
    """References that were found and are not listed."""


@dataclass(frozen=True)
class Holders:
    """Who holds a buffer, at one moment; nothing in it keeps anything alive. Prints as a tree."""

    size: int
    """Bytes of the buffer."""
    refcount: int
    """References to its MemInfo."""
    name: str | None
    """Its name, if it was given one."""
    policy: str
    """Name of its policy."""
    kind: str
    """'inline', 'adopted', 'resizable' or 'block'."""
    address: int
    """Address of the first byte."""
    holders: tuple[Holder, ...]
    """Objects with a reference of their own to the MemInfo, and in these all others."""
    named: tuple[NamedReference, ...]
    """References that C code took under a name."""
    unexplained: int
    """References to the MemInfo that nothing was found for: of compiled code, or of C code that
    took them without a name."""
    more: int
    """Objects that are not listed, of very many."""
    site_number: int
    """Number of the place of birth; 0: not known."""

    @property
    def site(self) -> Site | None:
        """The place of birth, as far as it was recorded: see :func:`tracking`."""
        return site_of(self.site_number)

    @property
    def place(self) -> Place | None:
        """The line of the program that it was born in, as far as it was recorded."""
        return place_of(self.site_number)

    @property
    def rows(self) -> tuple[Holder, ...]:
        """All holders of the tree in one list."""
        return tuple(_flat(self.holders))

    def to_dict(self) -> dict[str, Any]:
        """All of it as dicts, lists, texts and numbers, for JSON."""
        place = None if self.place is None else str(self.place)
        return dict(as_plain({**asdict(self), "place": place}))

    def tree(self) -> list[str]:
        """Who holds it, as lines of text."""
        return list(_tree(_branches(self)))

    def __repr__(self) -> str:
        return "\n".join([_title(self), *self.tree()])


def as_plain(value: Any) -> Any:
    """The same with lists in the place of tuples, as JSON has it."""
    if isinstance(value, dict):
        return {key: as_plain(item) for key, item in value.items()}
    return [as_plain(item) for item in value] if isinstance(value, (list, tuple)) else value


def _flat(holders: tuple[Holder, ...]) -> Iterator[Holder]:
    for holder in holders:
        yield holder
        yield from _flat(holder.holders)


# --- What was found. ---


def _dtype_text(dtype: Any) -> str:
    return "structured" if dtype.names is not None else str(dtype.name)


def _array_text(array: object, kind: str, nbytes: int, size: int) -> str:
    part = "owner of the block" if kind == "block" else "all of it"
    if nbytes < size:
        part = f"view of {human_bytes(nbytes)}"
    name = type_name(type(array))
    return f"{name} {_dtype_text(_dtype(array))} {_shape(array)}, {part}"


def _text(object_: object, kind: str, nbytes: int, size: int) -> str:
    if kind in ("array", "block"):
        return _array_text(object_, kind, nbytes, size)
    return {
        "memoryview": f"memoryview of {human_bytes(nbytes)}",
        "buffer": "buffer of memoryviews",
        "strides": "layout that as_strided made",
        "meminfo": "memrt.MemInfo",
        "jitted": "MemInfo of an array from jitted code",
        "capsule": "capsule 'memrt.meminfo'",
    }[kind]


class _Finding:
    """What the extension found of one buffer, with the objects; to be forgotten soon."""

    def __init__(self, found: tuple[Any, ...], size: int) -> None:
        self._objects, references = found
        self._size = size
        self._paths: dict[int, list[tuple[Any, ...]]] = {}
        self._links: dict[int, list[int]] = {}
        for to, link, count, path, steps in references:
            if path is None:
                self._links.setdefault(to, []).append(link)
            else:
                self._paths.setdefault(to, []).append((path, steps, count))

    def roots(self) -> list[int]:
        """Those that hold the MemInfo itself."""
        objects = enumerate(self._objects)
        return [place for place, row in objects if _LINKS[row[1]] in _HOLD]

    def holder(self, place: int) -> Holder:
        object_, link, references, found, _, nbytes = self._objects[place]
        referrers: list[Referrer] = []
        for path, steps, count in self._paths.get(place, ()):
            referrers.append(refer(object_, path, steps, count))
        holders = list(map(self.holder, self._links.get(place, ())))
        listed = sum(each.count for each in referrers) + len(holders)
        kind = _LINKS[link]
        return Holder(
            kind,
            _text(object_, kind, nbytes, self._size),
            nbytes if nbytes >= 0 else None,
            references,
            tuple(referrers),
            tuple(holders),
            max(0, references - found),
            max(0, found - listed),
        )


def build(meminfo: tuple[Any, ...], found: tuple[Any, ...], more: int) -> Holders:
    """Put together what the extension found of one buffer."""
    (address, size, refcount, kind, policy, name, site), names = meminfo
    finding = _Finding(found, size)
    holders = tuple(map(finding.holder, finding.roots()))
    named = tuple(
        NamedReference(text, _NAMED.get(number, "reference"), count, thread, age / 1e9)
        for text, number, count, thread, age in names
    )
    known = len(holders) + sum(each.count for each in named)
    return Holders(
        size,
        refcount,
        name or None,
        policy,
        _KINDS[kind],
        address,
        holders,
        named,
        max(0, refcount - known),
        more,
        site,
    )


# --- As a tree. ---

_Branch = tuple[str, list[Any]]


def _title(holders: Holders) -> str:
    name = "" if holders.name is None else f" {holders.name!r}"
    born = "" if holders.place is None else f", born in {holders.place}"
    return (
        f"{human_bytes(holders.size)} MemInfo{name}, refcount {holders.refcount}, "
        f"policy {holders.policy}{born}"
    )


def _plural(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def _branches(holders: Holders) -> list[_Branch]:
    branches = [branch for holder in holders.holders for branch in _branch(holder)]
    for each in holders.named:
        times = "" if each.count == 1 else f", {each.count} times"
        branches.append((f"C {each.kind} {each.name!r}{times}", []))
    if holders.more:
        branches.append((f"{_plural(holders.more, 'more object')}", []))
    if holders.unexplained:
        text = f"{_plural(holders.unexplained, 'reference')} unexplained: compiled code or C that "
        branches.append((text + "took it without a name", []))
    return branches


def _branch(holder: Holder) -> list[_Branch]:
    """A holder with what is below it; one that only stands between others gives way to them."""
    below: list[_Branch] = [(_referrer_text(each), []) for each in holder.referrers]
    inner = [branch for other in holder.holders for branch in _branch(other)]
    if holder.unexplained:
        below.append((f"{_plural(holder.unexplained, 'reference')} unexplained", []))
    if holder.more:
        below.append((f"{_plural(holder.more, 'more reference')}", []))
    if holder.kind in _PLUMBING and not below and inner:
        return inner
    return [(holder.text, [*below, *inner])]


def _referrer_text(referrer: Referrer) -> str:
    return referrer.text if referrer.count == 1 else f"{referrer.text}, {referrer.count} times"


def _tree(branches: list[_Branch], indent: str = "") -> Iterator[str]:
    shown = branches if len(branches) <= _LINES else branches[: _LINES - 1]
    if len(shown) < len(branches):
        shown = [*shown, (f"{len(branches) - len(shown):,} more", [])]
    for place, (text, below) in enumerate(shown):
        last = place == len(shown) - 1
        yield f"{indent}{'└─ ' if last else '├─ '}{text}"
        yield from _tree(below, indent + ("   " if last else "│  "))


# --- Asking. ---


def _references_of(object_: object, /) -> int:
    """What sys.getrefcount says of an object that nobody but this call refers to."""
    return sys.getrefcount(object_)


_OWN = _references_of(object())


def holders(buffer: object, /) -> Holders:
    """Who holds the buffer behind an array, memoryview or MemInfo, or one that live() listed.

    Looks through all Python objects: arrays and views, memoryviews, MemInfos and capsules over the
    buffer, and for each what refers to it: variables of running functions and generators, globals
    of modules, attributes, containers. References that C code took under a name are told by it, all
    others of C and of compiled code by their number.

    No code of the objects runs, and none is kept alive by the result. All threads wait meanwhile,
    under a second for a million objects; Ctrl-C interrupts.

    Raises:
        ValueError: when the memory is not memrt's; memrt.adopt() takes such memory over.
        TypeError: when it is nothing that has memory.
        LookupError: when a buffer that was listed is gone by now.
    """
    if isinstance(buffer, LiveBuffer):
        return build(*_memrt.find_holders(buffer, _OWN, 1, buffer.address))
    return build(*_memrt.find_holders(buffer, _OWN, 1))
