"""Arrays survive swapping; memrt reports swapped bytes; limits do not count swap space."""

import subprocess
import sys
from pathlib import Path

import full_group
import limited_group

DEVICE = "/dev/zram0"
MIB = limited_group.MIB
SWAP = 512 * MIB

USE = """
import memrt
import numpy as np

memrt.enable()
tables = [np.full(500_000, number, "f8") for number in range(60)]
memory = memrt.debug.process_memory()
assert memory.swapped > 64 << 20, memory
assert memory.arrays.mapped >= 60 * 4_000_000, memory
assert all((table == number).all() for number, table in enumerate(tables))
print(f"{memory.swapped >> 20} MiB in swap space, {memory.resident >> 20} MiB resident")
freed = memory.swapped
del tables
memrt.release_unused()
assert memrt.debug.process_memory().swapped < freed / 2
"""


def make_swap():
    subprocess.run(["modprobe", "zram"], check=True)
    Path("/sys/block/zram0/disksize").write_text(str(SWAP))
    for command in (["mkswap", DEVICE], ["swapon", DEVICE]):
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


make_swap()
with limited_group.limited_group(128 * MIB) as group:
    (group / "memory.swap.max").write_text("max")
    result = limited_group.run_inside(group, sys.executable, "-c", USE)
    print(result.stdout, end="")
    assert result.returncode == 0, result
    result = limited_group.run_inside(group, *full_group.MEMRT, "-c", full_group.HANDLE)
    assert (result.returncode, result.stdout) == (0, "saved\n"), result
subprocess.run(["swapoff", DEVICE], check=True)
