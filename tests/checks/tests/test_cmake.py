"""Test that CMake refuses unsupported targets."""

from __future__ import annotations

import platform
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.skipif(platform.machine() != "x86_64", reason="only x86-64 compilers have -m32")
def test_cmake_refuses_a_32_bit_target(tmp_path):
    command = ["cmake", "-S", ROOT, "-B", tmp_path, "-DCMAKE_C_FLAGS=-m32"]
    command += ["-DCMAKE_TRY_COMPILE_TARGET_TYPE=STATIC_LIBRARY"]  # needs no 32-bit C library
    result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    message = " ".join(result.stderr.split())
    assert result.returncode != 0
    assert "memrt needs a 64-bit target, but the compiler makes code for 4-byte pointers" in message
