"""Find the holders of many buffers in one search, and the buffers that are lost."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from memrt import _memrt
from memrt._holders.naming import UNKNOWN_PATH, Namer
from memrt._holders.search import LINKS
from memrt._support.units import human_bytes, plural
from memrt._tracking.live import LiveBuffer

AND_OTHERS = " and others"
"""End of the text of a holder, for a buffer with more holders."""

_MOST_WAYS = 20_000  # paths to name, which takes about 1 s
_VIEWS = ("array", "memoryview")
_SHAPES_SHOWN = 4
_TEXTS_SHOWN = 2  # texts of one shape
_MIN_WASTED = 64 * 1024  # as in retention()
_MIN_RATIO = 0.5


@dataclass
class _Use:
    """Way in which a program holds a buffer."""

    text: str
    nbytes: int | None
    """Bytes of the view that holds the buffer; None for other holders and views of all bytes."""


@dataclass
class _Subject:
    """Result of a search for one buffer."""

    nbytes: int
    is_live: bool
    named: int
    unexplained: int
    found: int
    uses: list[_Use] = field(default_factory=list)

    @property
    def is_lost(self) -> bool:
        return self.is_live and not self.named and not self.found

    @property
    def viewed(self) -> int | None:
        """Bytes of all views; None unless known views of a part are the only holders."""
        if self.named or self.unexplained or self.found != len(self.uses) or not self.uses:
            return None
        sizes = [use.nbytes for use in self.uses]
        return None if None in sizes else sum(size for size in sizes if size is not None)

    @property
    def shape(self) -> tuple[str, ...]:
        texts = list(dict.fromkeys(use.text for use in self.uses))
        texts.sort(key=lambda text: UNKNOWN_PATH in text)  # variables first
        shown = texts[:_TEXTS_SHOWN]
        if self.named:
            shown.append("a named reference of C code")
        if len(texts) > _TEXTS_SHOWN or self.found > len(self.uses):
            shown.append("more")
        if self.found and self.unexplained:
            shown.append("an unexplained reference")
        return tuple(shown) or ("no Python object",)


class Survey:
    """Holders of buffers, found by one search of the object graph.

    Parameters
    ----------
    buffers : Iterable[LiveBuffer]
        Entries of live().
    """

    def __init__(self, buffers: Iterable[LiveBuffer]) -> None:
        wanted = list({buffer.id: buffer for buffer in buffers}.values())
        rows, references, ways = _memrt.survey([buffer.address for buffer in wanted], _MOST_WAYS, 1)
        self._subjects: dict[int, _Subject] = {}
        by_group: defaultdict[int, list[_Subject]] = defaultdict(list)
        for buffer, row in zip(wanted, rows, strict=True):
            is_live, named, unexplained, found, group = row
            subject = _Subject(buffer.nbytes, bool(is_live), named, unexplained, found)
            self._subjects[buffer.id] = subject
            by_group[group].append(subject)
        namer = Namer((target, path) for target, path, _ in ways)
        texts = [namer.shape(target, path, steps) for target, path, steps in ways]
        for group, way, link, nbytes in references:
            for subject in by_group.get(group, ()):
                subject.uses.append(_use(subject, texts[way] if way >= 0 else None, link, nbytes))

    def knows(self, buffer: LiveBuffer) -> bool:
        """Return whether the search included a buffer."""
        return buffer.id in self._subjects

    def is_lost(self, buffer: LiveBuffer) -> bool:
        """Return whether a live buffer has neither a Python holder nor a named reference of C."""
        return self._subjects[buffer.id].is_lost

    def is_live(self, buffer: LiveBuffer) -> bool:
        """Return whether a buffer was still live at the search."""
        return self._subjects[buffer.id].is_live

    def describe(self, buffer: LiveBuffer) -> str:
        """Return the holders of a buffer as text: two at most, and whether there are more."""
        return " and ".join(self._subjects[buffer.id].shape)

    def main_holder(self, buffer: LiveBuffer) -> str:
        """Return the first holder of a buffer as text, and whether there are others."""
        first, *others = self._subjects[buffer.id].shape
        return first + AND_OTHERS if others else first

    def lines(self, buffers: Sequence[LiveBuffer], *, in_command: bool = False) -> list[str]:
        """Return the number of buffers for each kind of holder, as lines of text.

        A single buffer has no such lines, because the tree of its holders has more detail. The hint
        about views names a function, or a command if `in_command` is true."""
        see = "`python -m memrt retention`" if in_command else "memrt.debug.retention()"
        subjects = [self._subjects[buffer.id] for buffer in buffers]
        if len(subjects) == 1:
            return _retention_lines(subjects, see)
        counts = Counter(subject.shape for subject in subjects if subject.is_live)
        sizes: defaultdict[str, set[int]] = defaultdict(set)
        for subject in subjects:
            for use in subject.uses:
                if use.nbytes is not None:
                    sizes[use.text].add(use.nbytes)
        shown = counts.most_common(_SHAPES_SHOWN)
        lines = [f"{count:,} x {_shape_text(shape, sizes)}" for shape, count in shown]
        if len(counts) > len(shown):
            rest = sum(counts.values()) - sum(count for _, count in shown)
            ways = plural(len(counts) - len(shown), "other way")
            lines.append(f"{rest:,} x held in {ways}")
        return [*lines, *_retention_lines(subjects, see)]


def _use(subject: _Subject, text: str | None, link: int, nbytes: int) -> _Use:
    is_part = LINKS[link] in _VIEWS and 0 <= nbytes < subject.nbytes
    text = "an unnamed Python object" if text is None else text
    if is_part:
        text += ", through a view"
    return _Use(text, nbytes if is_part else None)


def _shape_text(shape: tuple[str, ...], sizes: dict[str, set[int]]) -> str:
    return " and ".join(text + _sizes_text(sizes.get(text, set())) for text in shape)


def _sizes_text(sizes: set[int]) -> str:
    if not sizes:
        return ""
    least, most = human_bytes(min(sizes)), human_bytes(max(sizes))
    return f" of {least}" if least == most else f" of {least} to {most}"


def _retention_lines(subjects: list[_Subject], see: str) -> list[str]:
    """Return a hint with `see` if views of a small part keep large buffers alive, else no lines."""
    kept = [
        (subject.nbytes, subject.viewed)
        for subject in subjects
        if subject.viewed is not None
        and subject.nbytes - subject.viewed >= max(_MIN_WASTED, subject.nbytes * _MIN_RATIO)
    ]
    if not kept:
        return []
    size, viewed = sum(size for size, _ in kept), sum(viewed for _, viewed in kept)
    return [
        f"views of {human_bytes(viewed)} keep {plural(len(kept), 'buffer')} of "
        f"{human_bytes(size)}: see {see}"
    ]
