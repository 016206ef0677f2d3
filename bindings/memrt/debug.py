"""Find the code behind allocations, and the objects behind live memory.

Live buffers: tracking, live, sites, find, placement.
Leaks: assert_no_leaks, growth, suppress_leaks.
Small views over large buffers: retention.
Dumps of live buffers: dump, dump_on_refusal, dump_on_signal.
Event traces: trace, mark, Trace.
A function that is called with allocations, resizes and frees: hook.
Peaks, sizes, pages and threads: exact_peak, reset_peak, sizes, memory_stats, threads.
Reference operations through the function table: reference_counts.
Times of slow paths and system calls: latency.
Statistics of all levels at one moment: snapshot.
Memory of the whole process: process_memory, pressure.
Policies, limits and options in force: enabled, policies, default_policy, limits, options.
Allocator of the default policy: set_default_allocator.
NumPy's own handler in a thread or block: without_policy.
Write-protected arrays: freeze.
Arrays that are not needed soon: cold.
Arrays that a function may overwrite in place: is_unique.
Memory freed before an allocation is refused: on_refusal.
Symbols of compiled code: unresolved_symbols, check_symbols.

:func:`memrt.holders` shows the objects that keep a buffer alive.
"""

from typing import TYPE_CHECKING

from memrt import _memrt
from memrt._memrt import check_symbols, is_unique, unresolved_symbols
from memrt._support.public import import_at_first_use, public

if TYPE_CHECKING:
    from memrt._allocators.allocator_source import set_default_allocator
    from memrt._allocators.placement import placement
    from memrt._arrays.freezing import freeze
    from memrt._arrays.paging import cold
    from memrt._holders.retention import retention
    from memrt._leaks.growth import growth
    from memrt._leaks.leaks import LeakError, assert_no_leaks, suppress_leaks
    from memrt._policy.enabling import enabled, without_policy
    from memrt._policy.limit import limits
    from memrt._policy.live_policies import default_policy, policies
    from memrt._policy.refusal import on_refusal
    from memrt._process.account import process_memory
    from memrt._process.pressure import pressure
    from memrt._profile.dump import dump, dump_on_refusal, dump_on_signal
    from memrt._stats.latency import latency
    from memrt._stats.memory import memory_stats
    from memrt._stats.moment import snapshot
    from memrt._stats.peak import exact_peak
    from memrt._stats.references import reference_counts
    from memrt._stats.sizes import sizes
    from memrt._stats.snapshot import reset_peak
    from memrt._stats.threads import threads
    from memrt._support.options import options
    from memrt._trace.reader import Trace
    from memrt._trace.recorder import mark, trace
    from memrt._trace.trace_file import TraceError
    from memrt._tracking.find import find
    from memrt._tracking.hooks import hook
    from memrt._tracking.live import live, sites, tracking
else:
    __getattr__ = import_at_first_use(
        __name__,
        {
            "memrt._arrays.freezing": "freeze",
            "memrt._arrays.paging": "cold",
            "memrt._holders.retention": "retention",
            "memrt._leaks.growth": "growth",
            "memrt._leaks.leaks": "LeakError assert_no_leaks suppress_leaks",
            "memrt._allocators.allocator_source": "set_default_allocator",
            "memrt._policy.enabling": "enabled without_policy",
            "memrt._policy.limit": "limits",
            "memrt._policy.live_policies": "default_policy policies",
            "memrt._allocators.placement": "placement",
            "memrt._policy.refusal": "on_refusal",
            "memrt._process.account": "process_memory",
            "memrt._process.pressure": "pressure",
            "memrt._profile.dump": "dump dump_on_refusal dump_on_signal",
            "memrt._stats.latency": "latency",
            "memrt._stats.memory": "memory_stats",
            "memrt._stats.moment": "snapshot",
            "memrt._stats.peak": "exact_peak",
            "memrt._stats.references": "reference_counts",
            "memrt._stats.sizes": "sizes",
            "memrt._stats.snapshot": "reset_peak",
            "memrt._stats.threads": "threads",
            "memrt._support.options": "options",
            "memrt._trace.reader": "Trace",
            "memrt._trace.recorder": "mark trace",
            "memrt._trace.trace_file": "TraceError",
            "memrt._tracking.find": "find",
            "memrt._tracking.hooks": "hook",
            "memrt._tracking.live": "live sites tracking",
        },
    )

tracemalloc_domain: int = _memrt.features()["tracemalloc_domain"]
"""tracemalloc domain of memory that memrt allocates itself. NumPy has a domain of its own.

``tracemalloc.DomainFilter(True, memrt.debug.tracemalloc_domain)`` reduces a snapshot to this
memory."""

__all__ = [
    "LeakError",
    "Trace",
    "TraceError",
    "assert_no_leaks",
    "check_symbols",
    "cold",
    "default_policy",
    "dump",
    "dump_on_refusal",
    "dump_on_signal",
    "enabled",
    "exact_peak",
    "find",
    "freeze",
    "growth",
    "hook",
    "is_unique",
    "latency",
    "limits",
    "live",
    "mark",
    "memory_stats",
    "on_refusal",
    "options",
    "placement",
    "policies",
    "pressure",
    "process_memory",
    "reference_counts",
    "reset_peak",
    "retention",
    "set_default_allocator",
    "sites",
    "sizes",
    "snapshot",
    "suppress_leaks",
    "threads",
    "trace",
    "tracemalloc_domain",
    "tracking",
    "unresolved_symbols",
    "without_policy",
]


def __dir__() -> list[str]:
    return list(__all__)


for _function in (check_symbols, is_unique, unresolved_symbols):
    public(__name__)(_function)
del _function
