"""The verdict: the most important findings of all rules, at most five."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from memrt._profile.findings.content_rules import find_duplicates, find_wide
from memrt._profile.findings.finding import Evidence, Finding
from memrt._profile.findings.held import find_growth, find_lost, find_retained
from memrt._profile.findings.untouched import find_untouched
from memrt._profile.findings.usage import find_fragmentation, find_repeated, find_temporaries

MOST_FINDINGS = 5

_RULES: tuple[Callable[[Evidence], Iterable[Finding]], ...] = (
    find_lost,
    find_growth,
    find_retained,
    find_duplicates,
    find_temporaries,
    find_wide,
    find_fragmentation,
    find_repeated,
    find_untouched,
)


def find_all(evidence: Evidence) -> list[Finding]:
    """Return the findings with the most bytes first, at most MOST_FINDINGS."""
    found = [finding for rule in _RULES for finding in rule(evidence)]
    found.sort(key=lambda each: -each.bytes * (2 if each.is_rising else 1))
    return found[:MOST_FINDINGS]
