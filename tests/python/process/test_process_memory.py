"""The account of the whole memory of a process, on ten programs."""

from __future__ import annotations

import json

import memrt
import pytest
from gil import CAN_LACK_GIL
from memrt import _memrt

MIB = 1 << 20
SLACK = 2 * MIB  # memory of the interpreter in a part, besides the memory of the program
# Between two readings of the memory map. In builds without a GIL, Python's allocator is mimalloc,
# which maps and returns pages meanwhile.
CHANGES = 8 * MIB if CAN_LACK_GIL else MIB // 2

PRELUDE = """
import ctypes, json, mmap, multiprocessing, os, sys, threading
import memrt, numpy as np
MIB = 1 << 20
"""

# Print the account, and sums of the memory map by names and access.
REPORT = """
SHARED = ("/dev/shm/", "/dev/zero", "/memfd:", "/SYSV")

def read_map():
    rows = []
    with open("/proc/self/smaps") as file:
        for line in file:
            words = line.split()
            if not words[0].endswith(":"):
                name = " ".join(words[5:])
                rows.append({"access": words[1], "inode": int(words[4]), "name": name})
            else:
                rows[-1][words[0][:-1]] = int(words[1]) * 1024 if words[1].isdigit() else 0
    return rows

def sum_map():
    rows = read_map()
    libraries = {row["inode"] for row in rows if "x" in row["access"] and row["inode"]}
    sums = dict.fromkeys(("files", "shared", "code", "stack", "heap", "anonymous"), 0)
    for row in rows:
        name = row["name"]
        if "x" in row["access"] or row["inode"] in libraries or name.startswith("[v"):
            kind = "code"
        elif name.startswith(SHARED):
            kind = "shared"
        elif name.startswith("/"):
            kind = "files"
        else:
            kind = {"[stack]": "stack", "[heap]": "heap"}.get(name, "anonymous")
        sums[kind] += row["Rss"]
    return sums

def report():
    memrt.debug.process_memory()  # loads modules
    sum_map()
    memory = memrt.debug.process_memory()
    print(json.dumps({"account": memory.to_dict(), "map": sum_map()}))
"""

# Code of a program, name of the growing part, and bytes of the growth.
PROGRAMS = {
    "interpreter": ("", "code", 4 * MIB),
    "numpy": ("kept = [np.ones(8 * MIB) for _ in range(2)]", "malloc_used", 128 * MIB),
    "memrt": (
        "kept = memrt.full(8 * MIB, 1.0)\n"
        "gone = memrt.full(4 * MIB, 1.0)\n"
        "unused = memrt.zeros(16 * MIB)\n"
        "del gone",
        "arrays",
        64 * MIB,
    ),
    "malloc in threads": (
        "libc = ctypes.CDLL(None)\n"
        "libc.malloc.restype = ctypes.c_void_p\n"
        "ready, end = threading.Barrier(5), threading.Event()\n"
        "def work():\n"
        "    for _ in range(100):\n"
        "        ctypes.memset(libc.malloc(MIB // 10), 1, MIB // 10)\n"
        "    ready.wait()\n"
        "    end.wait()\n"
        "for _ in range(4):\n"
        "    threading.Thread(target=work, daemon=True).start()\n"
        "ready.wait()",
        "malloc_used",
        40 * MIB,
    ),
    "freed by malloc": (
        "libc = ctypes.CDLL(None)\n"
        "libc.malloc.restype = ctypes.c_void_p\n"
        "libc.free.argtypes = [ctypes.c_void_p]\n"
        "blocks = [libc.malloc(MIB // 16) for _ in range(1024)]\n"
        "for block in blocks:\n"
        "    ctypes.memset(block, 1, MIB // 16)\n"
        "kept = [libc.malloc(MIB // 16) for _ in range(16)]  # above all other blocks\n"
        "for block in blocks:\n"
        "    libc.free(block)",
        "malloc_free",
        64 * MIB,
    ),
    "threads": (
        "threading.stack_size(16 * MIB)\n"
        "ready, end = threading.Barrier(9), threading.Event()\n"
        "class Argument(ctypes.Structure):\n"
        "    _fields_ = [('bytes', ctypes.c_char * (2 * MIB))]\n"
        "def wait():\n"
        "    ctypes.CDLL(None).getpid(Argument())\n"  # a copy on the stack
        "    ready.wait()\n"
        "    end.wait()\n"
        "for _ in range(8):\n"
        "    threading.Thread(target=wait, daemon=True).start()\n"
        "ready.wait()",
        "stacks",
        8 * MIB,
    ),
    "file": (
        "with open('data', 'w+b') as file:\n"
        "    file.write(bytes(32 * MIB))\n"
        "    file.flush()\n"
        "    kept = mmap.mmap(file.fileno(), 32 * MIB)\n"
        "sum(kept[::4096])",
        "files",
        32 * MIB,
    ),
    "shared memory": (
        "from multiprocessing.shared_memory import SharedMemory\n"
        "block = SharedMemory(create=True, size=16 * MIB)\n"
        "other = mmap.mmap(-1, 16 * MIB)\n"
        "for start in range(0, 16 * MIB, MIB):\n"
        "    block.buf[start:start + MIB] = other[start:start + MIB] = bytes([1]) * MIB\n"
        "import atexit\n"
        "atexit.register(lambda: (block.close(), block.unlink()))",
        "shared",
        32 * MIB,
    ),
    "objects": (
        "kept = [{str(i): (i, float(i))} for i in range(200_000)]",
        "python",
        64 * MIB,
    ),
    "child": (
        "kept = memrt.full(4 * MIB, 1.0)\n"
        "inherited = [(i,) for i in range(200_000)]\n"
        "def run():\n"
        "    own = memrt.full(2 * MIB, 1.0)\n"
        "    report()\n"
        "    sys.stdout.flush()\n"
        "context = multiprocessing.get_context('fork')\n"
        "child = context.Process(target=run)\n"
        "child.start()\n"
        "child.join()\n"
        "report = lambda: None",
        "arrays",
        48 * MIB,
    ),
}


@pytest.fixture
def run_reporting(libc_malloc, run_python):
    """Return a function that runs code, and returns the account and the sums of the memory map."""

    def run(code: str, **options):
        shown = run_python(f"{PRELUDE}{REPORT}{code}\nreport()\n", **options)
        return json.loads(shown.stdout)

    return run


def resident(account: dict, *names: str) -> int:
    return sum(account["parts"][name]["resident"] for name in names)


@pytest.mark.parametrize("name", PROGRAMS)
def test_account_explains_95_percent_of_a_program(run_reporting, name):
    code, part, grown = PROGRAMS[name]
    shown = run_reporting(code, env={"MEMRT_CACHE": "1", "MEMRT_CHECK": "0"})
    account, sums = shown["account"], shown["map"]
    parts = account["parts"]
    total = account["resident"]
    assert sum(row["resident"] for row in parts.values()) == total
    assert abs(sum(sums.values()) - total) <= CHANGES
    assert account["peak_resident"] >= total
    assert parts["rest"]["resident"] <= 0.05 * total, account
    assert grown * 0.95 <= parts[part]["resident"] <= parts[part]["mapped"] + SLACK, account


@pytest.mark.parametrize("name", PROGRAMS)
def test_parts_agree_with_the_memory_map(run_reporting, name):
    shown = run_reporting(PROGRAMS[name][0], env={"MEMRT_CACHE": "1", "MEMRT_CHECK": "0"})
    account, sums = shown["account"], shown["map"]
    assert abs(resident(account, "files") - sums["files"]) <= CHANGES
    assert abs(resident(account, "shared") - sums["shared"]) <= CHANGES
    # Code has static data in anonymous memory besides.
    assert sums["code"] - CHANGES <= resident(account, "code") <= sums["code"] + SLACK
    assert resident(account, "stacks") >= sums["stack"] - CHANGES
    assert resident(account, "malloc_used", "malloc_free") >= sums["heap"] - CHANGES
    names = ("arrays", "cached", "headers", "malloc_used", "malloc_free", "python", "stacks")
    anonymous = sums["heap"] + sums["stack"] + sums["anonymous"]
    found = resident(account, *names, "rest")
    assert anonymous - max(SLACK, CHANGES) <= found <= anonymous + CHANGES


def test_unwritten_array_is_mapped_and_not_resident(run_reporting):
    code = PROGRAMS["memrt"][0]
    account = run_reporting(code, env={"MEMRT_CACHE": "1", "MEMRT_CHECK": "0"})["account"]
    arrays, cached = account["parts"]["arrays"], account["parts"]["cached"]
    assert arrays["mapped"] == 192 * MIB
    assert 64 * MIB <= arrays["resident"] <= 68 * MIB  # the first huge page has a header
    assert 32 * MIB <= cached["resident"] <= 33 * MIB
    assert account["peak_arrays"] == 224 * MIB
    assert account["parts"]["headers"]["resident"] <= MIB


def test_small_arrays_have_headers(run_reporting):
    code = "kept = [memrt.full(8, 1.0) for _ in range(100_000)]"
    account = run_reporting(code, env={"MEMRT_CACHE": "1", "MEMRT_CHECK": "0"})["account"]
    assert account["parts"]["arrays"]["resident"] == 6_400_000
    assert 6_400_000 <= account["parts"]["headers"]["resident"] <= 9_000_000


def test_table_shows_resident_and_mapped_bytes():
    array = memrt.zeros(4 * MIB)
    memory = memrt.debug.process_memory()
    lines = repr(memory).splitlines()
    assert lines[0] == "memrt.types.ProcessMemory:"
    code = next(line for line in lines if line.startswith("  code "))
    assert "MiB  of " in code
    assert code.endswith("programs and libraries")
    assert lines[-1].startswith("  resident ")
    assert "peak of arrays" in lines[-1]
    assert memory._repr_html_().count("<tr>") == len(lines) - 1
    assert memory.arrays.mapped >= array.nbytes


def test_trim_gives_memory_of_malloc_back(run_reporting):
    code = PROGRAMS["freed by malloc"][0]
    before = run_reporting(code)["account"]
    after = run_reporting(f"{code}\nmemrt.release_unused(everything=True)")["account"]
    assert resident(before, "malloc_free") >= 60 * MIB
    assert resident(after, "malloc_free") <= 8 * MIB
    assert after["parts"]["malloc_free"]["mapped"] >= 60 * MIB


def test_segments_are_ranges_of_addresses():
    assert all(0 < start < end for start, end in _memrt.segments())


def test_release_unused_takes_only_the_keyword():
    assert memrt.release_unused(everything=False) >= 0
    with pytest.raises(TypeError):
        memrt.release_unused(True)
    with pytest.raises(TypeError):
        memrt.release_unused(all=True)
