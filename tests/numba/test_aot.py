"""Modules compiled ahead of time contain a separate runtime, which memrt does not see."""

from __future__ import annotations

import pytest
from gil import CAN_LACK_GIL

pytest.importorskip("numba.pycc", reason="this Numba has no ahead-of-time compiler")

PROGRAM = """
import sys
import warnings
warnings.simplefilter("ignore")
import memrt
import memrt.numba
if sys.argv[1] == "memrt":
    memrt.numba.install()
import numpy as np
from numba import njit
from numba.pycc import CC

compiler = CC("ahead_of_time")
compiler.output_dir = "."

@compiler.export("ones", "f8[:](i8)")
def ones(n):
    return np.ones(n)

@compiler.export("total", "f8(f8[:])")
def total(array):
    return (array + 1).sum()

compiler.compile()
sys.path.insert(0, ".")
import ahead_of_time

before = memrt.stats().alloc
made = ahead_of_time.ones(1000)
assert made.base.refcount == 1
assert ahead_of_time.total(made) == 2000
assert memrt.stats().alloc == before, "memrt does not see it"
assert not memrt.is_managed(made)

jitted = njit(lambda n: np.ones(n))(10)
assert memrt.is_managed(jitted) == (sys.argv[1] == "memrt")
assert ahead_of_time.total(jitted) == 20
assert njit(lambda a: a[1:])(made).sum() == 999
owned = memrt.adopt(made)
assert memrt.is_managed(owned) and owned.sum() == 1000
print("both")
"""


@pytest.mark.slow
@pytest.mark.skipif(CAN_LACK_GIL, reason="calls of such a module crash with Numba 0.68.1 alone")
@pytest.mark.parametrize("runtime", ["stock", "memrt"])
def test_module_compiled_ahead_of_time_works_beside_jitted_code(run_python, runtime):
    assert run_python(PROGRAM, runtime).stdout == "both\n"
