"""Limits of a process in a real control group with a memory limit."""

from __future__ import annotations

import subprocess
import sys

from memory_group import limited_group

MIB = 1 << 20

# The program joins the group before the first array.
PROGRAM = """
import pathlib, sys
pathlib.Path(sys.argv[1], "cgroup.procs").write_text("0")
import memrt, numpy as np
{body}
"""


def run_in_group(group, body):
    command = [sys.executable, "-c", PROGRAM.format(body=body), str(group)]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout


def test_percentage_refers_to_the_limit_of_the_group():
    with limited_group(400 * MIB) as group:
        assert int(run_in_group(group, "print(memrt.limit('80%'))")) == 400 * MIB // 100 * 80


def test_auto_leaves_room_for_other_memory_in_the_group():
    with limited_group(400 * MIB) as group:
        limit = int(run_in_group(group, "print(memrt.limit('auto'))"))
    assert 200 * MIB < limit < 350 * MIB


def test_auto_limit_raises_memory_error_where_the_system_kills():
    body = """
memrt.enable()
memrt.limit("auto")
kept = []
try:
    while True:
        kept.append(np.ones(1 << 17))
except MemoryError:
    print(len(kept))
"""
    with limited_group(400 * MIB) as group:
        assert int(run_in_group(group, body)) > 100
