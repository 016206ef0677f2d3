"""Give the policy and scope of the caller to threads of compiled code without the GIL.

Compiled code refers to functions by name, and llvmlite has the address of each name. The module
registers functions of memrt for the release of the GIL, and wraps the function that runs parallel
loops. Numba registers the latter when a threading layer starts.
"""

from __future__ import annotations

from typing import Any

PARALLEL_FOR = "numba_parallel_for"


def connect(runtime: Any) -> None:
    """Register the functions of memrt with llvmlite, now and when a threading layer starts.

    `runtime` is the replacement of Numba's runtime module.
    """
    import llvmlite.binding

    register = llvmlite.binding.add_symbol
    for name, address in (runtime.thread_symbols | runtime.scratch_symbols).items():
        register(name, address)

    def add_symbol(name: str, address: int) -> None:
        register(name, runtime.wrap_parallel_for(address) if name == PARALLEL_FOR else address)

    llvmlite.binding.add_symbol = add_symbol
