"""Starts every Python of a run of Numba's tests: says at its end on which runtime Numba was.

The folder to say it in stands in SUITE_PROOF; a file for each process that used Numba's runtime.
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
    """What memrt counts; with `alloc`, after one more block that Numba's own calls make."""
    import memrt

    if alloc is not None:
        module._MemInfo(alloc(8))
    return memrt.stats().alloc


atexit.register(_say)
if os.environ.get("SUITE_SIDE") == "memrt":
    # What `python -m memrt run --numba` gives to child processes, found without importing memrt.
    package = PathFinder.find_spec("memrt").submodule_search_locations[0]
    runpy.run_path(os.path.join(package, "numba", "_site", "sitecustomize.py"))
