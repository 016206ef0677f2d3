"""Result of a search for holders: types, conversion for JSON, and text as a tree."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from memrt._holders.naming import Referrer
from memrt._support.public import public
from memrt._support.units import human_bytes
from memrt._tracking.sites import Place, Site, full_place, place_of, site_of

_PLUMBING = ("buffer", "strides", "meminfo", "jitted", "capsule")  # may only connect holders
_LINES = 20  # most lines below one branch of a tree


@public("memrt.types")
@dataclass(frozen=True)
class NamedReference:
    """References that C code acquired under one name.

    Examples
    --------
    >>> import memrt
    >>> import numpy as np
    >>> tensor = memrt.types.Tensor(memrt.zeros(3))
    >>> theirs = np.from_dlpack(tensor)
    >>> [(each.kind, each.count) for each in memrt.holders(tensor.meminfo).named]
    [('export', 1)]
    """

    name: str
    """Name of the references."""
    kind: str
    """'reference', or 'export' for references handed to another library."""
    count: int
    """Number of references."""
    thread: int
    """Operating system's number of the thread that acquired the first reference."""
    age: float
    """Seconds since the first reference was acquired."""


@public("memrt.types")
@dataclass(frozen=True)
class Holder:
    """Python object that keeps a buffer alive.

    Examples
    --------
    >>> import memrt
    >>> table = memrt.zeros(100)
    >>> [holder] = memrt.holders(table).holders[0].holders
    >>> holder.kind, holder.text
    ('array', 'ndarray float64 (100,), whole buffer')
    """

    kind: str
    """'block' for an array that owns the buffer, 'array' for other arrays, 'memoryview', 'meminfo'
    for a memrt.MemInfo, 'capsule', 'jitted' for the base of arrays from jitted functions. Between
    such objects there may be 'buffer', shared by memoryviews, and 'strides', made by
    as_strided."""
    text: str
    """Description of the object."""
    nbytes: int | None
    """Bytes that the object addresses; None for objects other than arrays and memoryviews."""
    references: int
    """Number of references to the object."""
    referrers: tuple[Referrer, ...]
    """Referrers of the object; only some of very many."""
    holders: tuple[Holder, ...]
    """Objects that borrow memory from the object, and therefore refer to the object."""
    unexplained: int
    """Number of references without a known origin, such as references of C code and of expressions
    under evaluation."""
    more: int
    """Number of references found but not listed."""


@public("memrt.types")
@dataclass(frozen=True)
class Holders:
    """Snapshot of the holders of a buffer. Keeps no object alive, and prints as a tree.

    Examples
    --------
    >>> import memrt
    >>> table = memrt.zeros(100)
    >>> view = table[:10]
    >>> found = memrt.holders(table)
    >>> found.nbytes, found.refcount, [holder.nbytes for holder in found.rows]
    (800, 1, [None, 800, 80])
    """

    nbytes: int
    """Size of the buffer in bytes."""
    refcount: int
    """Number of references to the MemInfo of the buffer."""
    name: str | None
    """Name of the buffer, or None."""
    policy: str
    """Name of the policy."""
    kind: str
    """'inline', 'adopted', 'resizable' or 'block'."""
    address: int
    """Address of the first byte."""
    holders: tuple[Holder, ...]
    """Objects with a direct reference to the MemInfo. All other holders are nested in these
    objects."""
    named: tuple[NamedReference, ...]
    """References that C code acquired under a name."""
    unexplained: int
    """Number of references to the MemInfo without a known origin: of compiled code, or acquired by
    C code without a name."""
    more: int
    """Number of objects found but not listed."""
    site_number: int
    """Number of the allocation site; 0: not known."""

    @property
    def site(self) -> Site | None:
        """Allocation site with its call stack; None if not recorded: see :func:`tracking`."""
        return site_of(self.site_number)

    @property
    def place(self) -> Place | None:
        """Source line of the allocation; None if not recorded."""
        return place_of(self.site_number)

    @property
    def rows(self) -> tuple[Holder, ...]:
        """All holders of the tree as a flat tuple."""
        return tuple(_flat(self.holders))

    def to_dict(self) -> dict[str, Any]:
        """Return the result for JSON.

        Returns
        -------
        dict
            Fields by name, as dicts, lists, texts and numbers.
        """
        return dict(as_plain({**asdict(self), "place": full_place(self.site)}))

    def tree(self) -> list[str]:
        """Return the tree of holders as text.

        Returns
        -------
        list of str
            Lines of the tree.
        """
        return list(_tree(_branches(self)))

    def __repr__(self) -> str:
        return "\n".join([_title(self), *self.tree()])


def as_plain(value: Any) -> Any:
    """Return a value with tuples replaced by lists, as in JSON."""
    if isinstance(value, dict):
        return {key: as_plain(item) for key, item in value.items()}
    return [as_plain(item) for item in value] if isinstance(value, (list, tuple)) else value


def _flat(holders: tuple[Holder, ...]) -> Iterator[Holder]:
    for holder in holders:
        yield holder
        yield from _flat(holder.holders)


# --- Print as a tree. ---

_Branch = tuple[str, list[Any]]  # text, branches below


def _title(holders: Holders) -> str:
    name = "" if holders.name is None else f" {holders.name!r}"
    site = "" if holders.place is None else f", allocated in {holders.place}"
    return (
        f"{human_bytes(holders.nbytes)} MemInfo{name}, refcount {holders.refcount}, "
        f"policy {holders.policy}{site}"
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
        text = f"{_plural(holders.unexplained, 'reference')} unexplained: held by compiled code, "
        branches.append((text + "or acquired by C code without a name", []))
    return branches


def _branch(holder: Holder) -> list[_Branch]:
    """Return the branch of a holder with the branches below.

    A holder that only connects other holders is replaced by the branches of these holders.
    """
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
