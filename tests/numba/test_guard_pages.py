"""Kernels of Numba that write past the end of a guarded array, in processes of their own."""

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
    ],
)
def test_kernel_that_writes_past_the_end_is_stopped(tmp_path, call, status, message):
    script = tmp_path / "kernel.py"
    script.write_text(PROGRAM.format(call=call))
    environment = {**os.environ, "MEMRT_GUARD_SAMPLE": "1", "MEMRT_CHECK": "0"}
    done = subprocess.run(
        [sys.executable, str(script)], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == status, done.stderr
    assert re.search(message, done.stderr.replace("\n", " "))
