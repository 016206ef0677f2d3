"""State of the GIL, which the search for holders needs, and builds of CPython without a GIL."""

import sys
import sysconfig

import pytest

CAN_LACK_GIL = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))
GIL_IS_OFF = not getattr(sys, "_is_gil_enabled", lambda: True)()
# Without a GIL, CPython has no debug hooks over the C library's malloc.
PYTHON_CHECKER = "debug" if CAN_LACK_GIL else "malloc_debug"  # a value of PYTHONMALLOC
# Builds of Python 3.14 without a GIL start a thread with a copy of the creator's context.
THREADS_INHERIT = bool(getattr(sys.flags, "thread_inherit_context", 0))

needs_gil = pytest.mark.skipif(GIL_IS_OFF, reason="the search for holders needs the GIL")
needs_no_gil = pytest.mark.skipif(not GIL_IS_OFF, reason="the GIL is on")

# Defect gh-152125 of CPython: a list that finds no memory for its items frees the items of an older
# list.
needs_safe_lists = pytest.mark.skipif(
    CAN_LACK_GIL,
    reason="this CPython frees items of a list twice when out of memory",
)
