"""Record at the exit of each Python process of Numba's tests which runtime Numba used.

SUITE_PROOF names the output folder. Each process that imported Numba's runtime writes one file.
"""

import atexit
import json
import os
import runpy
import sys
from importlib.machinery import PathFinder

_MODULE = "numba.core.runtime._nrt_python"


def _say():
    module = sys.modules.get(_MODULE)
    folder = os.environ.get("SUITE_PROOF")
    if module is None or folder is None:
        return
    on_memrt = hasattr(module, "memrt_version")
    made = None
    if on_memrt:
        made = _count(module)
        on_memrt = _count(module, module.meminfo_alloc) > made
    path = os.path.join(folder, f"{os.getpid()}-{os.urandom(4).hex()}.json")
    with open(path, "w") as file:
        json.dump({"pid": os.getpid(), "on_memrt": on_memrt, "alloc": made}, file)


def _count(module, alloc=None):
    """Return memrt's count of allocations. With `alloc`, first make one block through Numba."""
    import memrt

    if alloc is not None:
        module._MemInfo(alloc(8))
    return memrt.stats().alloc


atexit.register(_say)
if os.environ.get("SUITE_SIDE") == "memrt":
    # Run the sitecustomize that `python -m memrt run --numba` gives to child processes. Its path is
    # found without importing memrt.
    package = PathFinder.find_spec("memrt").submodule_search_locations[0]
    runpy.run_path(os.path.join(package, "numba", "_site", "sitecustomize.py"))
    if os.environ.get("SUITE_REFPRUNE") == "1":
        import memrt.numba

        memrt.numba.install(refprune=True)
