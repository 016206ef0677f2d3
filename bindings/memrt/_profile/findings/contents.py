"""Sample the contents of large buffers: equal contents, and values that fit a narrower type.

A sample is 16 KiB of a buffer, and MOST_BUFFERS buffers are read at most: 4 MiB. Reads go through
/proc, so a free by another thread meanwhile is harmless. Systems without /proc give no contents.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from hashlib import blake2b
from typing import NamedTuple

from memrt._process.smaps import Memory

MOST_BUFFERS = 256
LEAST_BYTES = 256 * 1024
CONFIRMATION = 1.0  # seconds to the second sample where the program allocates nothing
_CHUNKS = 8
_CHUNK = 2048  # bytes
_WORDS = _CHUNKS * _CHUNK // 8


def _every_word(mask: int) -> int:
    """Return an integer that has `mask` in each 8-byte word of a sample."""
    return int.from_bytes(mask.to_bytes(8, "little") * _WORDS, "little")


_NO_FLOAT32 = _every_word(2**29 - 1)  # bits of a float64 that float32 lacks
_NO_INT16 = _every_word(2**64 - 2**15)  # bits that are zero in integers from 0 to 32767
_EXPONENTS = range(1023 - 40, 1023 + 65)  # of plausible values: 1e-12 to 1e19
_LEAST_VALUES = 3  # distinct values: fewer are flags or constants


class Content(NamedTuple):
    """Sampled content of one buffer."""

    address: int
    nbytes: int
    site: int
    digest: bytes
    """Digest of the sample; empty for a constant content."""
    narrow: str
    """Narrower type that holds all sampled values, 'float32' or 'int16'; or ''."""


class Candidates(NamedTuple):
    """Sampled contents of a moment, to sample again.

    Only unchanged contents count: a result that is about to be added to an array may equal the
    array for a moment.
    """

    t: float = 0.0
    """Time of the moment, in seconds."""
    alloc: int = 0
    """Blocks that the process had allocated."""
    contents: Sequence[Content] = ()

    def are_due(self, t: float, alloc: int) -> bool:
        """Return whether the program went on: it allocated, or CONFIRMATION seconds passed."""
        return bool(self.contents) and (alloc != self.alloc or t > self.t + CONFIRMATION)

    def unchanged(self, earlier: Iterable[Content] = ()) -> list[Content]:
        """Return the contents that a second sample finds again, or that `earlier` contents have."""
        rows = [(each.nbytes, each.address, each.site) for each in self.contents]
        again = {*earlier, *sample_contents(rows, len(rows))}
        return [each for each in self.contents if each in again]


def sample_contents(rows: Iterable[tuple[int, int, int]], most: int) -> list[Content]:
    """Return sampled contents of the largest buffers.

    Parameters
    ----------
    rows : Iterable[tuple[int, int, int]]
        Bytes, address and number of the site of each buffer.
    most : int
        Most buffers to read.
    """
    largest = heapq.nlargest(most, (row for row in rows if row[0] >= LEAST_BYTES))
    with Memory() as memory:
        found = (_content(memory, *row) for row in largest)
        return [each for each in found if each is not None]


def _content(memory: Memory, nbytes: int, address: int, site: int) -> Content | None:
    step = (nbytes - _CHUNK) // (_CHUNKS - 1) // 64 * 64
    sample = b"".join(memory.read(address + i * step, _CHUNK) for i in range(_CHUNKS))
    if len(sample) < _CHUNKS * _CHUNK:
        return None
    if sample == sample[:8] * _WORDS:
        return Content(address, nbytes, site, b"", "")
    digest = blake2b(sample, digest_size=16).digest()
    return Content(address, nbytes, site, digest, _narrow_type(sample))


def _narrow_type(sample: bytes) -> str:
    """Return the narrower type for all 8-byte values of a sample, or ''.

    Samples with mostly zeros, or with fewer than three distinct values, give ''.
    """
    bits = int.from_bytes(sample, "little")
    is_float, is_integer = bits & _NO_FLOAT32 == 0, bits & _NO_INT16 == 0
    if not (is_float or is_integer):
        return ""
    words = memoryview(sample).cast("Q")[::4].tolist()
    values = [word for word in words if word != 0]
    if len(values) < len(words) // 4 or len(set(values)) < _LEAST_VALUES:
        return ""
    if is_integer:
        return "int16"
    return "float32" if all(word >> 52 & 0x7FF in _EXPONENTS for word in values) else ""
