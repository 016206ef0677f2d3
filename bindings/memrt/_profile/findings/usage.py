"""Rules about the use of memory over time: temporaries, repeated allocations, fragmentation."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

from memrt._profile.findings.finding import Evidence, Finding
from memrt._profile.findings.statements import Statement, statement_at
from memrt._profile.moment import LARGE
from memrt._support.units import human_bytes
from memrt._tracking.sites import Site, site_of

_PEAK_PART = 0.2  # least part of the peak that temporaries take
_SITE_PART = 0.01  # least part of the peak of a site whose source is read
_REPEATED = 1000  # least allocations of a line
_REPEATED_BYTES = 64 * 1024  # least bytes of each
_REPEATED_PEAKS = 50  # least bytes in total, as a multiple of the peak
_SIMILAR = 0.25  # least mean size of a site, as a part of the largest of the statement
_FREE_BYTES = 64 * 1024 * 1024  # least free bytes in memory

_Key = tuple[str, int]  # file and first line of a statement
_Sum = tuple[Statement, Site, float, float]  # statement, largest site, buffers, bytes


def _by_statement(rows: Iterable[tuple[int, float, float]]) -> dict[_Key, _Sum]:
    """Return buffers and bytes by statement. Rows: number of a site, buffers, bytes.

    Sites whose buffers are small beside the largest of the statement are left out.
    """
    groups: defaultdict[_Key, list[_Sum]] = defaultdict(list)
    for number, count, nbytes in rows:
        site = site_of(number)
        file = "" if site is None else site.place.file or ""
        statement = None if site is None else statement_at(file, site.place.line)
        if site is not None and statement is not None and count:
            groups[file, statement.line].append((statement, site, count, nbytes))
    found: dict[_Key, _Sum] = {}
    for key, members in groups.items():
        least = _SIMILAR * max(nbytes / count for _, _, count, nbytes in members)
        large = [each for each in members if each[3] / each[2] >= least]
        statement, site, _, _ = max(large, key=lambda each: each[3])
        counts, sizes = sum(each[2] for each in large), sum(each[3] for each in large)
        found[key] = (statement, site, counts, sizes)
    return found


def find_temporaries(evidence: Evidence) -> Iterator[Finding]:
    """Find statements whose intermediate results are a large part of the peak.

    A statement counts if more of its buffers were live than it has results, but no more than it has
    operations, and if not all of them live at the end.
    """
    if evidence.is_sampled:
        return
    least = evidence.peak * _SITE_PART
    at_peak = evidence.moment.large.items()
    rows = ((site, n, size) for site, (n, size) in at_peak if size >= least)
    large = (buffer for buffer in evidence.buffers if buffer.nbytes >= LARGE)
    at_end = _by_statement((buffer.site_number, 1, buffer.nbytes) for buffer in large)
    for key, (statement, site, count, nbytes) in _by_statement(rows).items():
        extra = count - statement.results
        is_possible = extra > 0 and count <= statement.operations + 1 and not statement.has_loop
        if statement.operations < 2 or not is_possible:
            continue
        if key in at_end and at_end[key][2] >= count:
            continue
        part = round(nbytes * extra / count)
        if evidence.is_large(part, _PEAK_PART):
            text = (
                f"{human_bytes(part)} of {human_bytes(evidence.peak)} at the peak are temporaries "
                f"of {site}: {count:.0f} arrays of the statement exist at once"
            )
            fix = "compute in place (`out=`, `+=`), or in parts of the array"
            yield Finding("temporaries", part, text, fix, site=site)


def find_repeated(evidence: Evidence) -> Iterator[Finding]:
    """Find statements that allocate large arrays of one size again and again."""
    least = _SIMILAR * _REPEATED_BYTES
    rows = ((site, n, size) for site, n, size in evidence.total if size >= n * least)
    for statement, site, count, nbytes in _by_statement(rows).values():
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
