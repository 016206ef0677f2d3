"""memrt.numba.install(refprune=True): memrt's refcount pruner in place of the pass of llvmlite."""

import pytest

PROGRAM = """
import sys
import memrt.numba
memrt.numba.install(refprune={refprune})
import llvmlite.binding as llvm
import numba, numpy as np
from numba.typed import List

@numba.njit
def total(n):
    arrays = List()
    for i in range(n):
        arrays.append(np.ones(i))
    sum = 0.0
    for array in arrays:
        sum += array.sum()
    return sum

before = memrt.stats()
print(total(10))
after = memrt.stats()
print(after.alloc - before.alloc - after.free + before.free)
text = total.inspect_llvm(total.signatures[0])
print(text.count("call void @NRT_incref"), text.count("call void @NRT_decref"))
print(sum(llvm.dump_refprune_stats()))
"""


def figures(run_python, refprune, **env):
    result = run_python(PROGRAM.format(refprune=refprune), env=env)
    total, left, refops, by_llvmlite = result.stdout.splitlines()
    assert (total, left) == ("45.0", "0")
    return sum(map(int, refops.split())), int(by_llvmlite)


def test_code_has_at_most_the_calls_that_llvmlite_leaves(run_python):
    ours, by_llvmlite = figures(run_python, True)
    stock, by_stock = figures(run_python, False)
    assert ours <= stock
    assert by_llvmlite == 0 < by_stock


def test_setting_of_numba_turns_the_pruner_off(run_python):
    ours, _ = figures(run_python, True)
    assert ours < figures(run_python, True, NUMBA_LLVM_REFPRUNE_PASS="0")[0]


def test_pruner_can_be_installed_after_numba(run_python):
    result = run_python("""
import memrt.numba
memrt.numba.install()
import numba.core.codegen as codegen
memrt.numba.install(refprune=True)
memrt.numba.install(refprune=True)
print(codegen.config.LLVM_REFPRUNE_PASS, int(codegen.config.OPT))
print(codegen.remove_redundant_nrt_refct.__module__)
""")
    assert result.stdout.splitlines() == ["0 3", "memrt.numba.refprune.hook"]


@pytest.mark.parametrize("name", ["remove_redundant_nrt_refct", "CPUCodeLibrary", "config"])
def test_numba_without_the_interface_is_refused(run_python, name):
    result = run_python(f"""
import memrt.numba
memrt.numba.install()
import numba.core.codegen as codegen
del codegen.{name}
try:
    memrt.numba.install(refprune=True)
except ImportError as error:
    print(error)
""")
    assert result.stdout.startswith("numba.core.codegen must have the interfaces of tested")
