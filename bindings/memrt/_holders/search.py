"""Find the holders of a buffer: objects that keep the buffer alive, and their referrers."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from memrt import _memrt
from memrt._holders.inspection import type_name
from memrt._holders.naming import Namer, Referrer
from memrt._holders.report import Holder, Holders, NamedReference
from memrt._support.public import public
from memrt._support.units import human_bytes
from memrt._tracking.live import LiveBuffer

# Names of the values of memrt_link_t, in order.
LINKS = (
    *("none", "array", "block", "memoryview", "buffer", "strides", "meminfo", "jitted", "capsule"),
)
_HOLD = ("block", "meminfo", "jitted", "capsule")  # links that own a reference to the MemInfo
_KINDS = {1: "inline", 2: "adopted", 3: "resizable", 4: "block"}
_NAMED = {1: "reference", 2: "export"}

_shape = np.ndarray.shape.__get__
_dtype = np.ndarray.dtype.__get__


def _dtype_text(dtype: Any) -> str:
    return "structured" if dtype.names is not None else str(dtype.name)


def _array_text(array: object, kind: str, nbytes: int, size: int) -> str:
    part = "owner of the block" if kind == "block" else "whole buffer"
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
        "strides": "layout made by as_strided",
        "meminfo": "memrt.MemInfo",
        "jitted": "MemInfo of an array from jitted code",
        "capsule": "capsule 'memrt.meminfo'",
    }[kind]


class _Finding:
    """Holders and references of one buffer, as the extension found them.

    Refers to the objects themselves, so drop a finding soon.
    """

    def __init__(self, found: tuple[Any, ...], size: int) -> None:
        self._objects, references = found
        self._size = size
        self._paths: dict[int, list[tuple[Any, ...]]] = {}
        self._links: dict[int, list[int]] = {}
        named: list[tuple[Any, tuple[Any, ...]]] = []
        for to, link, count, path, steps in references:
            if path is None:
                self._links.setdefault(to, []).append(link)
            else:
                named.append((self._objects[to][0], path))
                self._paths.setdefault(to, []).append((path, steps, count))
        self._namer = Namer(named)

    def roots(self) -> list[int]:
        """Return the indexes of the objects that hold the MemInfo itself."""
        objects = enumerate(self._objects)
        return [place for place, row in objects if LINKS[row[1]] in _HOLD]

    def holder(self, place: int) -> Holder:
        object_, link, references, found, _, nbytes = self._objects[place]
        referrers: list[Referrer] = []
        for path, steps, count in self._paths.get(place, ()):
            referrers.append(self._namer.refer(object_, path, steps, count))
        holders = list(map(self.holder, self._links.get(place, ())))
        listed = sum(each.count for each in referrers) + len(holders)
        kind = LINKS[link]
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
    """Build the Holders of one buffer from the results of the extension."""
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


def _references_of(object_: object, /) -> int:
    """Return sys.getrefcount() of an object; for a temporary, the references of the call alone."""
    return sys.getrefcount(object_)


_OWN = _references_of(object())


@public("memrt")
def holders(buffer: object, /) -> Holders:
    """Find the holders of a buffer: the objects that keep the buffer alive.

    The result lists the arrays, views, memoryviews, MemInfos and capsules over the buffer. Each
    object has its referrers: variables of running functions and generators, globals of modules,
    attributes, containers. References that C code acquired under a name are listed by name. Other
    references of C code and of compiled code are only counted.

    Parameters
    ----------
    buffer : object
        Array, memoryview, MemInfo, or entry of :func:`memrt.debug.live`.

    Returns
    -------
    memrt.types.Holders
        Tree of the holders. The result keeps no object alive.

    Raises
    ------
    ValueError
        memrt does not manage the memory. :func:`memrt.adopt` puts such memory under memrt.
    TypeError
        `buffer` is neither an array, nor a memoryview, nor a MemInfo, nor an entry of live().
    LookupError
        The buffer of an entry of live() was freed.
    RuntimeError
        The GIL is off, so other threads change objects during the search.

    Notes
    -----
    The search visits all Python objects, and runs no code of the objects. Ctrl-C interrupts the
    search.

    Threads: all threads wait during the search, under a second for a million objects.

    Examples
    --------
    >>> import memrt
    >>> class Cache:
    ...     pass
    >>> Cache.table = memrt.zeros(100)
    >>> found = memrt.holders(Cache.table)
    >>> "attribute `table` of class Cache" in str(found)
    True
    """
    if isinstance(buffer, LiveBuffer):
        return build(*_memrt.find_holders(buffer, _OWN, 1, buffer.address))
    return build(*_memrt.find_holders(buffer, _OWN, 1))
