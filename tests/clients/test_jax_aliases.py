"""On the CPU, JAX shares arrays at addresses that are multiples of 64, without a copy."""

from __future__ import annotations

import subprocess
import sys

import jax
import jax.numpy as jnp
import memrt
import numpy as np
import pytest

PROGRAM = """
import jax, numpy as np
a = np.ones(1000, "float32")
c = {make}(a)
c.block_until_ready()
a[:] = 7
print(float(c[0]))
"""


def numpy_array(offset):
    """Return an array of NumPy's own memory, `offset` bytes above a multiple of 64."""
    memory = np.zeros(4000 + 128, "u1")
    start = -memory.ctypes.data % 64 + offset
    array = memory[start : start + 4000].view("float32")
    array[:] = 1
    return array


def seen_after_a_write(array, make):
    taken = make(array)
    taken.block_until_ready()
    array[:] = 7
    return float(taken[0])


def test_device_put_aliases_only_aligned_arrays():
    assert seen_after_a_write(numpy_array(0), jax.device_put) == 7
    assert seen_after_a_write(memrt.full(1000, 1, "float32"), jax.device_put) == 7
    assert seen_after_a_write(numpy_array(16), jax.device_put) == 1


@pytest.mark.parametrize("make", [jnp.array, lambda array: jax.device_put(array.copy())])
def test_copy_does_not_follow_later_writes(make):
    assert seen_after_a_write(memrt.full(1000, 1, "float32"), make) == 1


def test_device_put_copies_arrays_of_a_policy_with_alignment_16():
    with memrt.Policy(alignment=16):
        array = np.ones(1000, "float32")
    assert seen_after_a_write(array, jax.device_put) == 1


@pytest.mark.parametrize(
    ("make", "options", "seen"),
    [
        ("jax.device_put", [], "7.0"),
        ("jax.device_put", ["--alignment", "16"], "1.0"),
        ("jax.numpy.array", [], "1.0"),
    ],
)
def test_arrays_under_run_are_aliased_by_device_put(tmp_path, make, options, seen):
    (tmp_path / "program.py").write_text(PROGRAM.format(make=make))
    result = subprocess.run(
        [sys.executable, "-m", "memrt", "run", "--quiet", *options, tmp_path / "program.py"],
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert (result.returncode, result.stdout) == (0, f"{seen}\n"), result.stderr
