"""What the tests of reliability found in memrt, and the test that each of them left behind.

usage: python tests/reliability/findings.py

Writes the section of docs/reliability.md. Each test must be where it is said to be.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass

import page


@dataclass(frozen=True)
class Finding:
    """What was wrong; what found it; the file of the test that stays, below tests, and its name."""

    what: str
    by: str
    file: str
    test: str

    def is_there(self) -> bool:
        """A test of C or of Python, or a case of tests/failures, by its name."""
        text = (page.ROOT / "tests" / self.file).read_text(encoding="utf-8")
        name = re.escape(self.test)
        pattern = rf'(TEST|TEST_EACH)\({name}\b|def {name}\(|^    "{name}": '
        return re.search(pattern, text, re.MULTILINE) is not None


REFUSED = "a system that refuses"
FAILURES = "failure points"
HOSTILE = "hostile input"

FINDINGS = (
    Finding("destructors that release each other, a million deep, exhausted the stack",
            "destructors", "c/test_dtor.c",
            "a_chain_of_a_million_destructors_ends_on_a_small_stack"),
    Finding("so did Python owners", "destructors", "python/test_destructors.py",
            "test_a_long_chain_of_owners_ends_on_a_small_stack"),
    Finding("who read statistics at one instant counted a rise twice in the peak",
            "weak memory", "c/test_stats.c",
            "what_rises_and_falls_is_never_counted_twice_in_the_peak"),
    Finding("who was stopped while reading counted what fell and what rose after it in the peak",
            "ThreadSanitizer, where the machine had other work", "c/test_stats.c",
            "what_rises_and_falls_is_never_counted_twice_in_the_peak"),
    Finding("a chain of bases that goes in a circle kept is_managed() busy for ever", HOSTILE,
            "python/test_hostile.py",
            "test_a_chain_of_bases_that_goes_in_a_circle_comes_to_an_end"),
    Finding("wrap() of half the address space gave a memoryview of negative length", HOSTILE,
            "python/test_hostile.py",
            "test_sizes_that_overflow_are_refused_wherever_they_come_in"),
    Finding("a handler stayed in force though entering its policy failed", FAILURES,
            "failures/cases.py", "memrt.Policy.__enter__"),
    Finding("leaving a policy that failed left its handler in force", FAILURES,
            "failures/cases.py", "memrt.Policy.__exit__"),
    Finding("enable() that failed was half done", FAILURES, "failures/cases.py", "memrt.enable"),
    Finding("tracking stayed on where the answer to enabling it found no memory", FAILURES,
            "failures/cases.py", "memrt.tracking.__enter__"),
    Finding("without memory to look at a link of a chain, memrt's memory was called foreign",
            FAILURES, "failures/cases.py", "memrt.is_managed"),
    Finding("a block counted as a MemInfo although the object for it could not be made", FAILURES,
            "failures/cases.py", "memrt.meminfo, of a block"),
    Finding("limits of a policy, read without memory for an iterator, crashed CPython", FAILURES,
            "failures/cases.py", "memrt.Policy, with limits"),
    Finding("an import without memory said ImportError for MemoryError", FAILURES,
            "failures/cases.py", "memrt_import"),
    Finding("a guard took its upstream to align more than it had been asked to",
            "conformance of allocators", "c/test_guard.c",
            "an_upstream_need_not_align_more_than_it_is_asked_to"),
    Finding("a fork between two steps of another thread left the child a broken bin",
            "fork", "c/test_cache.c",
            "bins_of_threads_caught_in_the_middle_by_a_fork_are_no_harm_to_the_child"),
    Finding("a child made by clone() waited at its exit for a thread that it did not have",
            "fork", "c/test_purger.c",
            "a_child_made_without_the_handlers_of_fork_does_not_wait_for_the_purger_at_its_exit"),
    Finding("purges that ran at once kept each other going", "stress", "c/test_pages.c",
            "purges_that_run_at_once_end_and_take_nothing_from_those_who_use_pages"),
    Finding("one block of each class made a thread keep more than it may", "stress",
            "c/test_cache.c",
            "one_block_of_each_class_taken_leaves_no_more_kept_than_a_thread_may"),
    Finding("pages of a mapping that could not be unmapped stayed in memory", REFUSED,
            "c/test_mapped.c", "a_block_that_cannot_be_unmapped_gives_its_pages_back"),
    Finding("what munmap refused at the end of a policy was lost", REFUSED, "c/test_pool.c",
            "what_the_system_does_not_take_at_the_end_of_a_policy_is_kept_by_the_process"),
    Finding("the peak's error forgot policies that were gone", "a serialised oracle",
            "c/test_stats.c",
            "what_a_policy_hid_from_the_peak_stays_in_its_error_when_the_policy_is_gone"),
    Finding("a watched resizable MemInfo told of its death at address NULL, and of no resize",
            "watching all kinds", "c/test_block.c",
            "a_watched_resizable_one_tells_of_the_resizes_and_death_of_its_data"),
)  # fmt: skip


def leave_figures() -> None:
    about = (
        "Faults of memrt that these chores and tests found, all mended, each with the test that "
        "fails where it comes back. By `python tests/reliability/findings.py`."
    )
    rows = [(each.what, each.by, f"`tests/{each.file}`: {each.test}") for each in FINDINGS]
    facts = {"found and mended": len(FINDINGS)}
    page.record("findings", "Findings", about, facts, ("fault", "found by", "test"), rows)


def main() -> int:
    lost = [f"tests/{each.file}: {each.test}" for each in FINDINGS if not each.is_there()]
    print(*(f"there is no test {name}" for name in lost), sep="\n", end="\n" * bool(lost))
    if not lost:
        leave_figures()
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main())
