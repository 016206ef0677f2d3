"""List the faults found by reliability tests in memrt, each with a regression test.

usage: python tests/reliability/findings.py

Writes the section "findings" of docs/reliability.md. The exit status is 1 if a file
lacks the listed test; then nothing is written.

No library checks the list: issue trackers do not read the tests.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass

import page


@dataclass(frozen=True)
class Finding:
    """A fault: description, method of discovery, and regression test.

    `file` is the path of the test below tests; `test` is the name of the test.
    """

    what: str
    by: str
    file: str
    test: str

    def is_there(self) -> bool:
        """Return True if the file has the test: a C or Python test, or a case of tests/failures."""
        text = (page.ROOT / "tests" / self.file).read_text(encoding="utf-8")
        name = re.escape(self.test)
        pattern = rf'(TEST|TEST_EACH)\({name}\b|def {name}\(|^    "{name}": '
        return re.search(pattern, text, re.MULTILINE) is not None


REFUSED = "refused system calls"
FAILURES = "failure points"
HOSTILE = "hostile input"
SYSTEMS = "the tests on newer systems"

FINDINGS = (
    Finding("a chain of a million destructors exhausted the stack",
            "destructors", "c/meminfo/test_dtor.c",
            "long_destructor_chain_ends_on_small_stack"),
    Finding("a chain of Python owners exhausted the stack", "destructors",
            "python/meminfo/test_destructors.py",
            "test_long_owner_chain_is_freed_on_a_small_stack"),
    Finding("concurrent readers of statistics counted a rise twice in the peak",
            "weak memory", "c/stats/test_stats.c",
            "concurrent_reads_never_double_count_the_peak"),
    Finding("an interrupted reader counted freed and later allocated bytes in one peak",
            "ThreadSanitizer, on a loaded machine", "c/stats/test_stats.c",
            "concurrent_reads_never_double_count_the_peak"),
    Finding("is_managed() never returned for a circular chain of bases", HOSTILE,
            "python/process/test_hostile.py",
            "test_lookup_ends_on_a_circular_chain_of_bases"),
    Finding("a memoryview of wrap() over half the address space had a negative length", HOSTILE,
            "python/process/test_hostile.py",
            "test_overflowing_sizes_are_refused_and_allocate_nothing"),
    Finding("a failed entry into a policy left the handler of the policy active", FAILURES,
            "failures/cases.py", "memrt.Policy.__enter__"),
    Finding("a failed exit from a policy left the handler of the policy active", FAILURES,
            "failures/cases.py", "memrt.Policy.__exit__"),
    Finding("a failed enable() kept a part of the changes", FAILURES, "failures/cases.py",
            "memrt.enable"),
    Finding("tracking stayed on after the call lacked memory for its result", FAILURES,
            "failures/cases.py", "memrt.debug.tracking.__enter__"),
    Finding("is_managed() reported memrt's memory as foreign after a failed allocation",
            FAILURES, "failures/cases.py", "memrt.is_managed"),
    Finding("a block counted as a MemInfo, although the Python object was not allocated", FAILURES,
            "failures/cases.py", "memrt.meminfo, of a block"),
    Finding("a failed allocation of the iterator over limits of a policy crashed CPython", FAILURES,
            "failures/cases.py", "memrt.Policy, with limits"),
    Finding("an import without memory raised ImportError instead of MemoryError", FAILURES,
            "failures/cases.py", "memrt_import"),
    Finding("a guard assumed more alignment than requested from the upstream allocator",
            "conformance of allocators", "c/alloc/test_guard.c",
            "guard_aligns_blocks_over_minimally_aligned_upstream"),
    Finding("a fork during a change of a bin by another thread broke the bin in the child",
            "fork", "c/alloc/heap/test_thread_cache.c",
            "fork_child_repairs_bins_that_threads_were_changing"),
    Finding("a child of clone() waited at exit for the purger thread of the parent",
            "fork", "c/alloc/heap/test_purger.c",
            "cloned_child_exits_without_waiting_for_the_purger"),
    Finding("concurrent purges kept each other running without end", "stress",
            "c/alloc/heap/test_page_heap.c",
            "concurrent_purges_end_and_keep_contents_of_used_spans"),
    Finding("a thread cache with one block of each size class exceeded the limit", "stress",
            "c/alloc/heap/test_thread_cache.c",
            "thread_cache_stays_within_limits_with_all_size_classes"),
    Finding("pages of a mapping stayed in memory after a failed munmap", REFUSED,
            "c/alloc/test_mapped.c", "block_with_failed_unmap_still_returns_pages"),
    Finding("a mapping was lost after a failed munmap at the end of a policy", REFUSED,
            "c/alloc/heap/test_heap.c", "mapping_refused_at_policy_end_moves_to_shared_cache"),
    Finding("the error bound of the peak omitted released policies", "a serialised oracle",
            "c/stats/test_stats.c",
            "peak_error_covers_bytes_of_a_released_policy"),
    Finding("observers of a resizable MemInfo saw a free at address NULL, and no resize",
            "observation of all kinds", "c/event/test_user_observer.c",
            "observer_sees_resize_and_free_of_resizable_data"),
    Finding("a peak counted bytes that a thread had only reserved", "weak memory",
            "c/stats/test_stats.c", "bytes_reported_ahead_are_no_peak_during_the_report"),
    Finding("a child of fork hung if a thread that ended was freeing libunwind's cache",
            "the C tests under all settings", "c/os/test_unwind.c",
            "ending_thread_holds_off_a_fork_or_keeps_its_cache"),
    Finding("an assertion on statistics failed while a block was freed on the slow path",
            "checking mode", "c/stats/test_stats.c",
            "frees_on_the_slow_path_keep_statistics_consistent"),
    Finding("allocation hooks stopped the main thread beside threads that only allocate",
            "AddressSanitizer", "python/tracking/test_hooks.py",
            "test_main_thread_goes_on_beside_threads_with_many_events"),
    Finding("process_memory() read the page tables of all reserved address space",
            "AddressSanitizer", "python/process/test_memory_parts.py",
            "test_reserved_address_space_costs_no_memory"),
    Finding("a session of libdw stayed open for each file that libdw cannot read",
            "LeakSanitizer", "python/tracking/test_sites.py",
            "test_file_without_symbols_leaves_no_session_of_libdw_open"),
    Finding("process_memory() had no figures of malloc in Debian's own Python", SYSTEMS,
            "python/process/test_memory_parts.py",
            "test_malloc_of_a_program_with_a_fixed_address_is_known"),
    Finding("process_memory() did not explain large blocks of malloc on glibc 2.43", SYSTEMS,
            "python/process/test_memory_parts.py",
            "test_head_of_a_block_needs_flag_and_whole_pages"),
    Finding("process_memory() found one of several stacks in one mapping, on glibc 2.42", SYSTEMS,
            "python/process/test_memory_parts.py",
            "test_stacks_of_several_threads_in_one_mapping_are_found"),
    Finding("accounts in a recording were not in order of time", "the tests on a loaded machine",
            "python/profile/test_recording.py",
            "test_account_of_the_caller_replaces_later_readings"),
    Finding("two arrays that were equal for a moment were reported as duplicates",
            "the tests on a loaded machine", "python/profile/test_findings.py",
            "test_contents_count_only_if_a_second_sample_finds_them_again"),
)  # fmt: skip


def leave_figures() -> None:
    about = (
        "Bugs of memrt found by these chores and tests. All bugs are fixed; each bug has a "
        "regression test. By `python tests/reliability/findings.py`."
    )
    rows = [(each.what, each.by, f"`tests/{each.file}`: {each.test}") for each in FINDINGS]
    facts = {"found and fixed": len(FINDINGS)}
    page.record("findings", "Findings", about, facts, ("bug", "found by", "test"), rows)


def main() -> int:
    lost = [f"tests/{each.file}: {each.test}" for each in FINDINGS if not each.is_there()]
    print(*(f"missing regression test {name}" for name in lost), sep="\n", end="\n" * bool(lost))
    if not lost:
        leave_figures()
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main())
