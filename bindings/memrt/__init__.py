"""memrt: reference-counted memory for NumPy and compiled code.

Each buffer belongs to a MemInfo, which has an atomic reference count. Arrays borrow the memory of
the MemInfo. Importing the package changes nothing: memrt manages memory only where requested::

    import memrt

    a = memrt.zeros((1000, 1000))         # one array
    with memrt.Policy(alignment=4096):    # all arrays that NumPy makes here
        b = a @ a
    memrt.enable()                        # all arrays from now on, also in new threads
    print(memrt.stats())

Allocation: alloc, wrap, adopt, empty, zeros, full, array, as_array, aligned, volatile.
Inspection of arrays: meminfo, is_managed, handler_name, alignment.
Policies: Policy, arena, enable, disable.
Limits: limit, on_pressure.
Scopes: scope, scopes, current_scope, bind_scope.
Statistics: stats, holders, release_unused.
Options: set_option.
Exchange with other libraries: from_dlpack, from_arrow, from_cuda_array_interface.
Compiling against memrt: get_include, get_library, get_cmake_dir.

memrt.debug finds leaks and the code that allocates. memrt.telemetry exports statistics. memrt.types
has the types of results. memrt.cuda has arrays in GPU memory. memrt.numba makes Numba allocate from
memrt. memrt.testing injects allocation failures. memrt.workers gives settings to worker processes
and collects their statistics. memrt.dask accounts for the tasks of a Dask cluster. memrt.adaptors
adds properties to allocators.
"""

from typing import TYPE_CHECKING

from memrt import _memrt, debug, telemetry, testing, types
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
from memrt._support.options import warn_about_options
from memrt._support.public import import_at_first_use, public

if TYPE_CHECKING:
    from memrt import adaptors as adaptors
    from memrt import cuda as cuda
    from memrt._arrays.alignment import aligned, alignment
    from memrt._arrays.creation import adopt, array, full
    from memrt._arrays.volatile_array import volatile
    from memrt._holders.search import holders
    from memrt._interop.arrow import from_arrow
    from memrt._leaks.arena import arena
    from memrt._notebook.magics import load_ipython_extension as load_ipython_extension
    from memrt._policy.current_scope import current_scope
    from memrt._policy.enabling import disable, enable
    from memrt._policy.limit import limit
    from memrt._policy.policy import Policy
    from memrt._policy.scope_entry import bind_scope, scope
    from memrt._policy.scope_tree import scopes
    from memrt._process.pressure import on_pressure
    from memrt._stats.snapshot import stats
    from memrt._support.installation import get_cmake_dir, get_include, get_library
    from memrt._support.options import set_option
    from memrt.cuda._import import from_cuda_array_interface
else:
    __getattr__ = import_at_first_use(
        __name__,
        {
            "memrt": "adaptors cuda",
            "memrt._arrays.alignment": "aligned alignment",
            "memrt._arrays.creation": "adopt array full",
            "memrt._arrays.volatile_array": "volatile",
            "memrt._holders.search": "holders",
            "memrt._interop.arrow": "from_arrow",
            "memrt._leaks.arena": "arena",
            "memrt._policy.current_scope": "current_scope",
            "memrt._policy.enabling": "disable enable",
            "memrt._policy.limit": "limit",
            "memrt._policy.policy": "Policy",
            "memrt._policy.scope_entry": "bind_scope scope",
            "memrt._policy.scope_tree": "scopes",
            "memrt._process.pressure": "on_pressure",
            "memrt._stats.snapshot": "stats",
            "memrt._support.installation": "get_cmake_dir get_include get_library",
            "memrt._support.options": "set_option",
            "memrt._notebook.magics": "load_ipython_extension",
            "memrt.cuda._import": "from_cuda_array_interface",
        },
    )

__version__: str = _memrt.features()["version"]

__all__ = [
    "MemInfo",
    "OutOfMemoryError",
    "Policy",
    "adopt",
    "aligned",
    "alignment",
    "alloc",
    "arena",
    "array",
    "as_array",
    "bind_scope",
    "current_scope",
    "debug",
    "disable",
    "empty",
    "enable",
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
    "limit",
    "meminfo",
    "on_pressure",
    "release_unused",
    "scope",
    "scopes",
    "set_option",
    "stats",
    "telemetry",
    "testing",
    "types",
    "volatile",
    "wrap",
    "zeros",
]


def __dir__() -> list[str]:
    return [*__all__, "__version__"]


for _function in (
    *(alloc, as_array, empty, from_dlpack, handler_name, is_managed, meminfo),
    *(release_unused, wrap, zeros),
):
    public(__name__)(_function)
warn_about_options(stacklevel=2)


def _start_dumps() -> None:
    import os

    if "MEMRT_DUMP_ON_OOM" in os.environ:
        from memrt._profile.dump import dump_as_environment_says

        dump_as_environment_says(stacklevel=3)


_start_dumps()
del _function, _start_dumps, warn_about_options
