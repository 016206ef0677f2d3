"""memrt: reference-counted memory for NumPy and compiled code.

Each buffer belongs to a MemInfo, which has an atomic reference count. Arrays borrow the memory of
the MemInfo. Importing the package changes nothing: memrt manages memory only where requested::

    import memrt

    a = memrt.zeros((1000, 1000))         # one array
    with memrt.Policy(alignment=4096):    # all arrays that NumPy makes here
        b = a @ a
    memrt.enable()                        # all arrays from now on, also in new threads
    print(memrt.stats())

Allocation: alloc, wrap, adopt, empty, zeros, full, array, as_array, aligned.
Inspection of arrays: meminfo, is_managed, handler_name, alignment.
Policies: Policy, default_policy, enable, disable, enabled.
Scopes: scope, scopes, current_scope, bind_scope.
Statistics: stats, reset_peak, holders, release_unused.
Options: set_option.
Exchange with other libraries: from_dlpack, from_arrow, from_cuda_array_interface.
Compiling against memrt: get_include, get_library, get_cmake_dir.

memrt.debug finds leaks and the code that allocates. memrt.telemetry exports statistics. memrt.types
has the types of results. memrt.cuda has arrays in GPU memory. memrt.numba makes Numba allocate from
memrt. memrt.testing injects allocation failures.
"""

from memrt import _memrt, cuda, debug, telemetry, testing, types
from memrt._arrays.alignment import aligned, alignment
from memrt._arrays.creation import adopt, array, full
from memrt._holders.search import holders
from memrt._interop.arrow import from_arrow
from memrt._memrt import (
    MemInfo,
    OutOfMemoryError,
    alloc,
    as_array,
    empty,
    from_dlpack,
    handler_name,
    is_managed,
    meminfo,
    release_unused,
    wrap,
    zeros,
)
from memrt._policy.current_scope import current_scope
from memrt._policy.enabling import disable, enable, enabled
from memrt._policy.policy import Policy, default_policy
from memrt._policy.scope_entry import bind_scope, scope
from memrt._policy.scope_tree import scopes
from memrt._stats.snapshot import reset_peak, stats
from memrt._support.installation import get_cmake_dir, get_include, get_library, make_public
from memrt._support.options import set_option, warn_about_options
from memrt._tracking.notebook import load_ipython_extension as load_ipython_extension
from memrt.cuda._import import from_cuda_array_interface

__version__: str = _memrt.features()["version"]

__all__ = [
    "MemInfo",
    "OutOfMemoryError",
    "Policy",
    "adopt",
    "aligned",
    "alignment",
    "alloc",
    "array",
    "as_array",
    "bind_scope",
    "cuda",
    "current_scope",
    "debug",
    "default_policy",
    "disable",
    "empty",
    "enable",
    "enabled",
    "from_arrow",
    "from_cuda_array_interface",
    "from_dlpack",
    "full",
    "get_cmake_dir",
    "get_include",
    "get_library",
    "handler_name",
    "holders",
    "is_managed",
    "meminfo",
    "release_unused",
    "reset_peak",
    "scope",
    "scopes",
    "set_option",
    "stats",
    "telemetry",
    "testing",
    "types",
    "wrap",
    "zeros",
]


def __dir__() -> list[str]:
    return [*__all__, "__version__"]


make_public(globals())
warn_about_options(stacklevel=2)
del make_public, warn_about_options
