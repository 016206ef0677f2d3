"""Rules about the use of memory over time: temporaries, repeated allocations, fragmentation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from memrt._profile.findings.finding import Evidence, Finding
from memrt._profile.findings.operations import SIMILAR, Arrays, results_of, sum_of
from memrt._profile.findings.statements import Statement, statement_at
from memrt._profile.moment import LARGE
from memrt._support.units import human_bytes
from memrt._tracking.sites import Site, site_of
from memrt._tracking.user_code import has_user_call

_PEAK_PART = 0.2  # least part of the peak that temporaries take
_SITE_PART = 0.01  # least part of the peak of a site whose source is read
_REPEATED = 1000  # least allocations of a line
_REPEATED_BYTES = 64 * 1024  # least bytes of each
_REPEATED_PEAKS = 50  # least bytes in total, as a multiple of the peak
_FREE_BYTES = 64 * 1024 * 1024  # least free bytes in memory

_Key = tuple[str, int]  # file and first line of a statement
_Group = tuple[Statement, list[Arrays]]


def _by_statement(rows: Iterable[tuple[int, float, float]]) -> dict[_Key, _Group]:
    """Return arrays by statement of user code. Rows: number of a site, buffers, bytes."""
    groups: dict[_Key, _Group] = {}
    for number, count, nbytes in rows:
        site = site_of(number)
        statement = None if site is None or not count else _statement_of(site)
        if site is not None and statement is not None:
            key = (site.place.file or "", statement.line)
            groups.setdefault(key, (statement, []))[1].append(Arrays(site, count, nbytes))
    return groups


def _statement_of(site: Site) -> Statement | None:
    place = site.place
    return statement_at(place.file or "", place.line) if has_user_call(site.frames) else None


def find_temporaries(evidence: Evidence) -> Iterator[Finding]:
    """Find statements whose intermediate results are a large part of the peak.

    A statement counts if its operations had more results than the statement keeps, but no more than
    it has operations, and if not all of them live at the end. Of a call of a library, only the
    result counts: see results_of().
    """
    if evidence.is_sampled:
        return
    least = evidence.peak * _SITE_PART
    at_peak = evidence.moment.large.items()
    rows = ((site, n, size) for site, (n, size) in at_peak if size >= least)
    large = (buffer for buffer in evidence.buffers if buffer.nbytes >= LARGE)
    at_end = _by_statement((buffer.site_number, 1, buffer.nbytes) for buffer in large)
    for key, (statement, arrays) in _by_statement(rows).items():
        found = results_of(statement, arrays)
        if found is None or not _is_possible(statement, found.buffers):
            continue
        site, count, nbytes = found
        kept = results_of(*at_end[key]) if key in at_end else None
        if kept is not None and kept.buffers >= count:
            continue
        extra = count - statement.results
        part = round(nbytes * extra / count)
        if evidence.is_large(part, _PEAK_PART):
            text = (
                f"{human_bytes(part)} of {human_bytes(evidence.peak)} at the peak are temporaries "
                f"of {site}: {count:.0f} arrays of the statement exist at once"
            )
            fix = "compute in place (`out=`, `+=`), or in parts of the array"
            yield Finding("temporaries", part, text, fix, site=site)


def _is_possible(statement: Statement, count: float) -> bool:
    """Return whether a statement without a loop explains so many arrays, beyond its results."""
    is_explained = statement.results < count <= statement.operations + 1
    return is_explained and statement.operations >= 2 and not statement.has_loop


def find_repeated(evidence: Evidence) -> Iterator[Finding]:
    """Find statements that allocate large arrays of one size again and again."""
    least = SIMILAR * _REPEATED_BYTES
    rows = ((site, n, size) for site, n, size in evidence.total if size >= n * least)
    for statement, arrays in _by_statement(rows).values():
        site, count, nbytes = sum_of(arrays)
        mean = nbytes / count
        if count < _REPEATED or mean < _REPEATED_BYTES or not statement.has_operator:
            continue
        if nbytes >= _REPEATED_PEAKS * evidence.peak and nbytes % count == 0:
            text = (
                f"{site} allocates {human_bytes(round(mean))} {count:,.0f} times, "
                f"{human_bytes(round(nbytes))} in total"
            )
            yield Finding("repeated", 0, text, "reuse one array, by `out=` or `+=`", site=site)


def find_fragmentation(evidence: Evidence) -> Iterator[Finding]:
    """Find free memory that stays in memory, above the memory in use."""
    memory = evidence.memory
    arrays, resident = memory.get("arrays", 0), sum(memory.values())
    for free, owner, fix in (
        (min(memory.get("cached", 0), evidence.cached), "memrt", "`memrt.release_unused()`"),
        (memory.get("malloc_free", 0), "malloc", "malloc_trim(0), or set MALLOC_ARENA_MAX=2"),
    ):
        if free >= max(_FREE_BYTES, resident - free):
            text = (
                f"{human_bytes(free)} of {human_bytes(resident)} in memory at the end "
                f"are free blocks that {owner} keeps; {human_bytes(arrays)} are live arrays"
            )
            yield Finding("fragmentation", free, text, f"after the peak, call {fix}")
