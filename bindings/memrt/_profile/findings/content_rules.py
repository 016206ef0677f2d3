"""Rules about sampled contents: duplicates, and arrays wider than their values need."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

from memrt._profile.findings.contents import Content
from memrt._profile.findings.finding import Evidence, Finding
from memrt._profile.findings.held import MainHolder, main_holder
from memrt._support.units import human_bytes, plural
from memrt._tracking.sites import site_of, site_text

_WIDE = {"float32": ("float64", 0.5), "int16": ("int64", 0.75)}
_LEAST_PART = 0.2  # of the peak
_MOMENTS = ("at the end", "at the peak")


def find_duplicates(evidence: Evidence) -> Iterator[Finding]:
    """Find buffers of one size with equal sampled contents, that are not constant."""
    found: dict[frozenset[int], Finding] = {}
    for when, contents in zip(_MOMENTS, (evidence.at_end, evidence.at_peak), strict=True):
        groups: defaultdict[tuple[int, bytes], list[Content]] = defaultdict(list)
        for each in contents:
            if each.digest:
                groups[each.nbytes, each.digest].append(each)
        by_places: defaultdict[frozenset[int], list[list[Content]]] = defaultdict(list)
        for same in groups.values():
            if len(same) > 1:
                by_places[frozenset(each.site for each in same)].append(same)
        for sites, copies in by_places.items():
            saved = sum(same[0].nbytes * (len(same) - 1) for same in copies)
            if evidence.is_large(saved) and sites not in found:
                found[sites] = _duplicate(evidence, when, copies, saved)
    yield from found.values()


def _duplicate(evidence: Evidence, when: str, copies: list[list[Content]], saved: int) -> Finding:
    members = [each for same in copies for each in same]
    places = [text for text, _ in Counter(_line(each) for each in members).most_common(2)]
    holder = _holder(evidence, members)
    contents = "the same content" if len(copies) == 1 else f"{len(copies):,} contents"
    text = (
        f"{human_bytes(saved)} of {human_bytes(evidence.peak)} {when} are duplicates: "
        f"{plural(len(members), 'buffer')} from {' and '.join(places)} have {contents}, as far as "
        f"sampled{holder.clause}"
    )
    fix = "keep one array, and share the array or views of the array"
    return Finding("duplicates", saved, text, fix, holder.kind, site_of(members[0].site))


def find_wide(evidence: Evidence) -> Iterator[Finding]:
    """Find lines whose buffers hold only values of a narrower type, as far as sampled."""
    seen: set[tuple[int, str]] = set()
    for when, contents in zip(_MOMENTS, (evidence.at_end, evidence.at_peak), strict=True):
        groups: defaultdict[tuple[int, str], list[Content]] = defaultdict(list)
        for each in contents:
            if each.narrow:
                groups[each.site, each.narrow].append(each)
        for key, members in groups.items():
            wide, part = _WIDE[key[1]]
            saved = round(sum(each.nbytes for each in members) * part)
            if key in seen or not evidence.is_large(saved, _LEAST_PART):
                continue
            seen.add(key)
            holder = _holder(evidence, members)
            text = (
                f"{human_bytes(saved)} of {human_bytes(evidence.peak)} {when} would go with "
                f"{key[1]}: all sampled {wide} values of {plural(len(members), 'buffer')} from "
                f"{_line(members[0])} fit {key[1]}{holder.clause}"
            )
            fix = f"create the array with `dtype=np.{key[1]}`, if all values fit"
            yield Finding("wide", saved, text, fix, holder.kind, site_of(members[0].site))


def _holder(evidence: Evidence, members: Sequence[Content]) -> MainHolder:
    addresses = {each.address for each in members}
    return main_holder(evidence, [each for each in evidence.buffers if each.address in addresses])


def _line(content: Content) -> str:
    return site_text(site_of(content.site))
