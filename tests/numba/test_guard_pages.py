"""Kernels of Numba that write past the end of an array, or to a frozen array, in own processes."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

PROGRAM = """
import memrt
import memrt.numba

memrt.numba.install()
memrt.enable()

import numpy as np
from numba import njit


@njit
def fill(values, count):
    for i in range(count):
        values[i] = 1.0


@njit
def fill_own(size, count):
    values = np.zeros(size)
    for i in range(count):
        values[i] = 1.0
    return values.sum()


def freeze(values):
    view = values[:]
    memrt.debug.freeze(values)
    return view


{call}
"""


@pytest.mark.parametrize(
    ("call", "status", "message"),
    [
        ("fill(np.zeros(1000), 1001)", -11, "refused write .* 1 bytes past .* of 8000 bytes"),
        ("fill_own(1000, 1001)", -11, "refused write .* 1 bytes past .* of 8000 bytes"),
        ("fill(np.zeros(1001), 1002)", -6, "write 1 bytes past the end was found"),
        ("fill_own(1001, 1002)", -6, "write 1 bytes past the end was found"),
        ("fill(np.zeros(1000), 1000); fill_own(1000, 1000)", 0, ""),
        ("fill(freeze(memrt.zeros(99_999)), 9_999)", -11, "write .* of a frozen array of 799992 b"),
        ("fill(freeze(np.zeros(99_999)), 9_999)", -11, "write .* of a frozen array of 799992 b"),
    ],
)
def test_kernel_with_a_wrong_write_is_stopped(tmp_path, call, status, message):
    script = tmp_path / "kernel.py"
    script.write_text(PROGRAM.format(call=call))
    environment = {**os.environ, "MEMRT_GUARD_SAMPLE": "1", "MEMRT_CHECK": "0"}
    done = subprocess.run(
        [sys.executable, str(script)], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == status, done.stderr
    assert re.search(message, done.stderr.replace("\n", " "))
