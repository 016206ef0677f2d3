"""Rules about memory that is live at the end: lost, growing, or kept by small views."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

from memrt._leaks.advice import COPY, LOST, VIEW, fix_for
from memrt._leaks.survey import AND_OTHERS
from memrt._profile.findings.finding import Evidence, Finding
from memrt._support.units import human_bytes, plural
from memrt._tracking.live import LiveBuffer
from memrt._tracking.sites import Frame, Place, site_of, site_text
from memrt._tracking.user_code import library_calls

_LEAST_LOST = 64 * 1024  # bytes
_GROWING_PART = 0.05  # least part of the peak of a growing line
_LEAST_BUFFERS = 10  # of a growing line
_LEAST_PART = 0.15  # of the buffers, in each third of the allocations and the late half of the time


def find_lost(evidence: Evidence) -> Iterator[Finding]:
    """Find buffers without any known holder."""
    for each in evidence.lost:
        if each.nbytes >= _LEAST_LOST:
            text = (
                f"{_part(each.nbytes, evidence.live)} live at the end are lost: no Python object "
                f"holds {plural(len(each.buffers), 'buffer')} from {_place(each.buffers[0])}"
            )
            site = each.buffers[0].site
            yield Finding("lost", each.nbytes, text, LOST, "no Python object", site, True)


def find_retained(evidence: Evidence) -> Iterator[Finding]:
    """Find buffers that only views of a part keep, grouped by line."""
    groups: defaultdict[Place | None, list[Any]] = defaultdict(list)
    for each in evidence.retained:
        groups[each.place].append(each)
    by_address = {buffer.address: buffer for buffer in evidence.buffers}
    for found in groups.values():
        wasted = sum(each.wasted for each in found)
        if not evidence.is_large(wasted):
            continue
        kept = sum(each.nbytes for each in found)
        buffers = [b for each in found if (b := by_address.get(each.holders.address)) is not None]
        holder = main_holder(evidence, buffers)
        site = buffers[0].site if buffers else None
        where = "an unknown source line" if site is None else site_text(site)
        text = (
            f"{_part(kept, evidence.live)} live at the end come from {where}: small views keep "
            f"{plural(len(found), 'buffer')}{holder.clause}; {human_bytes(wasted)} would go if "
            "the views were copied"
        )
        is_rising = bool(buffers) and _grows(evidence, buffers)
        yield Finding("retained", wasted, text, COPY, holder.kind, site, is_rising)


def find_growth(evidence: Evidence) -> Iterator[Finding]:
    """Find lines whose held buffers were allocated until the end of the run."""
    retained = {each.holders.address for each in evidence.retained}
    for each in evidence.held:
        buffers = [buffer for buffer in each.buffers if buffer.address not in retained]
        nbytes = round(sum(buffer.nbytes * buffer.weight for buffer in buffers))
        if not evidence.is_large(nbytes, _GROWING_PART) or not _grows(evidence, buffers):
            continue
        holder = main_holder(evidence, buffers)
        text = (
            f"{_part(nbytes, evidence.live)} live at the end grew until the end: "
            f"{plural(len(buffers), 'buffer')} from {_place(buffers[0])}{holder.clause}"
        )
        fix = fix_for((holder.kind or "").replace(VIEW, ""))  # no small views: see find_retained()
        yield Finding("growth", nbytes, text, fix, holder.kind, buffers[0].site, True)


def _grows(evidence: Evidence, buffers: list[LiveBuffer]) -> bool:
    """Return whether buffers were allocated until the end, between other allocations.

    The buffers of the call with most bytes count, so that several buffers of one object count once.
    Each third of the allocations from the first of the buffers to the end must have a part of the
    buffers, and so must the second half of the time. Time counts less, because a process may wait
    at any moment. Other allocations must be at least as many, and a quarter of all must be freed. A
    program that loads data first, or only loads data, does not count.
    """
    counted = _of_main_call(buffers)
    first = min(buffer.id for buffer in buffers) - 1
    allocated = evidence.last - first
    later = sum(buffer.id > first for buffer in evidence.buffers)
    if len(counted) < _LEAST_BUFFERS or allocated < 2 * len(buffers) or later > allocated * 0.75:
        return False
    ages = [max(buffer.age - evidence.delay, 0.0) for buffer in counted]
    numbers = [(buffer.id - first) / allocated for buffer in counted]
    max_age = max(ages)
    late = sum(2 * age <= max_age for age in ages)
    return _spread(numbers) and late >= _LEAST_PART * len(counted)


def _of_main_call(buffers: list[LiveBuffer]) -> list[LiveBuffer]:
    """Return the buffers with the same calls from the user's line inwards, with most bytes."""
    groups: defaultdict[tuple[Frame, ...], list[LiveBuffer]] = defaultdict(list)
    for buffer in buffers:
        groups[_inner_calls(buffer.site_number)].append(buffer)
    return max(groups.values(), key=lambda group: sum(each.nbytes for each in group))


@cache
def _inner_calls(number: int) -> tuple[Frame, ...]:
    site = site_of(number)
    return () if site is None else tuple(library_calls(site.frames))


def _spread(parts: list[float]) -> bool:
    """Return whether numbers from 0 to 1 are in each third of the range."""
    thirds = Counter(min(max(int(part * 3), 0), 2) for part in parts)
    return all(thirds[third] >= _LEAST_PART * len(parts) for third in range(3))


class MainHolder(NamedTuple):
    """Most frequent kind of holder of some buffers."""

    kind: str | None
    """Description of the kind; None if not known."""
    share: str = ""
    """Number of buffers with such a holder, such as `` (99 of 100)``; empty if all have one."""

    @property
    def clause(self) -> str:
        """End of a sentence that names the holder; '' if not known."""
        return "" if self.kind is None else f", held by {self.kind}{self.share}"


def main_holder(evidence: Evidence, buffers: list[LiveBuffer]) -> MainHolder:
    """Return the most frequent kind of holder of buffers, as the survey knows them."""
    survey = evidence.survey
    if survey is None:
        return MainHolder(None)
    kinds = Counter(survey.main_holder(buffer) for buffer in buffers if survey.knows(buffer))
    if not kinds:
        return MainHolder(None)
    kind = kinds.most_common(1)[0][0]
    alone = kind.removesuffix(AND_OTHERS)
    count, known = kinds[alone] + kinds[alone + AND_OTHERS], kinds.total()
    return MainHolder(kind, "" if count == known else f" ({count:,} of {known:,})")


def _part(nbytes: int, live: int) -> str:
    return f"{human_bytes(nbytes)} of {human_bytes(max(live, nbytes))}"


def _place(buffer: LiveBuffer) -> str:
    return site_text(buffer.site)
