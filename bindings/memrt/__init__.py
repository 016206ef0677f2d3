"""memrt: reference-counted memory for NumPy and compiled code.

Every buffer is a MemInfo with an atomic count of references; arrays borrow from it. Importing the
package changes nothing; memory is managed where it is asked for::

    import memrt

    a = memrt.zeros((1000, 1000))         # one array
    with memrt.Policy(alignment=4096):    # all arrays that NumPy makes here
        b = a @ a
    memrt.enable()                        # all arrays from now on, also in new threads
    print(memrt.stats())

Making memory: alloc, wrap, empty, zeros, full, array, as_array.
Exchanging it with other libraries: from_dlpack, Tensor, from_arrow, Column.
Asking an array: meminfo, is_managed, handler_name, adopt, alignment, aligned.
Choosing: Policy, default_policy, policies, enable, disable, enabled, set_option, options.
Watching: stats, get_allocation_stats, reset_peak, exact_peak, tracking, live, sites.
Telling other tools: metrics, metrics_collector, stats_json, stats_schema.
Holding: holders, retention, release_unused.
Leaks: assert_no_leaks, growth, expect_to_last.
CUDA: from_cuda_array_interface.
Scopes: scope, scopes, current_scope, carry.
Traces: trace, mark, Trace.
Other tools: tracemalloc_domain.
Compiling against it: get_include, get_library, unresolved_symbols, check_symbols.

memrt.cuda has arrays in the memory of GPUs, memrt.numba puts Numba on memrt, memrt.testing lets
memory run out.
"""

from memrt import _memrt, cuda, testing
from memrt._alignment import Alignment, aligned, alignment
from memrt._arrays import adopt, array, full
from memrt._arrow import Column, from_arrow
from memrt._enabling import disable, enable, enabled
from memrt._growth import Growth, Trend, growth
from memrt._holders import Holder, Holders, NamedReference, holders
from memrt._installation import get_include, get_library
from memrt._leaks import LeakError, LeakGroup, assert_no_leaks, expect_to_last
from memrt._live import LiveBuffer, SiteUsage, live, sites, tracking
from memrt._memrt import (
    MemInfo,
    OutOfMemoryError,
    Tensor,
    alloc,
    as_array,
    check_symbols,
    empty,
    from_dlpack,
    handler_name,
    is_managed,
    meminfo,
    release_unused,
    unresolved_symbols,
    wrap,
    zeros,
)
from memrt._metrics import metrics, metrics_collector
from memrt._naming import Referrer
from memrt._notebook import load_ipython_extension as load_ipython_extension
from memrt._options import Option, options, set_option, warn_about_options
from memrt._peak import exact_peak
from memrt._policy import Policy, default_policy, policies
from memrt._retention import Retained, Retention, retention
from memrt._scopes import Scope, ScopeTree, carry, current_scope, scope, scopes
from memrt._sites import Frame, Place, Site
from memrt._stats import AllocationStats, Stats, get_allocation_stats, reset_peak, stats
from memrt._stats_json import stats_json, stats_schema
from memrt._trace import Mark, Trace, TraceError, TracePolicy, TraceUsage
from memrt._tracing import TraceStats, mark, trace
from memrt.cuda._array import from_cuda_array_interface

__version__: str = _memrt.features()["version"]

tracemalloc_domain: int = _memrt.features()["tracemalloc_domain"]
"""The domain in which ``tracemalloc`` shows what memrt allocated itself; NumPy has its own.

``tracemalloc.DomainFilter(True, memrt.tracemalloc_domain)`` leaves only these in a snapshot."""

__all__ = [
    "Alignment",
    "AllocationStats",
    "Column",
    "Frame",
    "Growth",
    "Holder",
    "Holders",
    "LeakError",
    "LeakGroup",
    "LiveBuffer",
    "Mark",
    "MemInfo",
    "NamedReference",
    "Option",
    "OutOfMemoryError",
    "Place",
    "Policy",
    "Referrer",
    "Retained",
    "Retention",
    "Scope",
    "ScopeTree",
    "Site",
    "SiteUsage",
    "Stats",
    "Tensor",
    "Trace",
    "TraceError",
    "TracePolicy",
    "TraceStats",
    "TraceUsage",
    "Trend",
    "adopt",
    "aligned",
    "alignment",
    "alloc",
    "array",
    "as_array",
    "assert_no_leaks",
    "carry",
    "check_symbols",
    "cuda",
    "current_scope",
    "default_policy",
    "disable",
    "empty",
    "enable",
    "enabled",
    "exact_peak",
    "expect_to_last",
    "from_arrow",
    "from_cuda_array_interface",
    "from_dlpack",
    "full",
    "get_allocation_stats",
    "get_include",
    "get_library",
    "growth",
    "handler_name",
    "holders",
    "is_managed",
    "live",
    "mark",
    "meminfo",
    "metrics",
    "metrics_collector",
    "options",
    "policies",
    "release_unused",
    "reset_peak",
    "retention",
    "scope",
    "scopes",
    "set_option",
    "sites",
    "stats",
    "stats_json",
    "stats_schema",
    "testing",
    "trace",
    "tracemalloc_domain",
    "tracking",
    "unresolved_symbols",
    "wrap",
    "zeros",
]

warn_about_options(stacklevel=2)
del warn_about_options
