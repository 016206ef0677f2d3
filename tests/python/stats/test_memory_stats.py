"""Memory behind all blocks, compared with the system's figures on programs with known content."""

import json

import memrt
import numpy as np
import pytest

MIB = 1 << 20

PRELUDE = """
import json, threading
import memrt, numpy as np
MIB = 1 << 20

def report():
    memrt.debug.process_memory(), memrt.debug.memory_stats()  # loads modules
    account = memrt.debug.process_memory()
    stats = memrt.debug.memory_stats()
    print(json.dumps({"stats": stats.to_dict(), "account": account.to_dict()}))
"""

PROGRAMS = {
    "nothing": "",
    "large arrays": "kept = [memrt.full(8 * MIB, 1.0), memrt.zeros(32 * MIB)]",
    "small arrays": "kept = [memrt.full(100, 1.0) for _ in range(100_000)]",
    "freed arrays": "kept = [memrt.full(5000, 1.0) for _ in range(4000)]\ndel kept[::2]",
    "purged arrays": (
        "kept = [memrt.full(5000, 1.0) for _ in range(4000)]\ndel kept[1:]\nmemrt.release_unused()"
    ),
    "policies": (
        "policies = [memrt.Policy(alignment=4096), memrt.Policy(cache_limit='1M')]\n"
        "kept = [memrt.alloc(3 * MIB, policy=policy) for policy in policies]"
    ),
}


def check_order(stats):
    assert stats["requested"] <= stats["allocated"] <= stats["active"] <= stats["mapped"]
    assert stats["mapped"] == stats["active"] + stats["cached"] + stats["tables"]
    assert stats["metadata"] == stats["tables"] + stats["records"]


@pytest.fixture
def run_reporting(libc_malloc, run_python):
    """Return a function that runs a program and returns its figures and its parts of memory."""

    def run(program, **settings):
        env = {"MEMRT_CACHE": "1", "MEMRT_CHECK": "0"} | settings
        result = run_python(f"{PRELUDE}{PROGRAMS[program]}\nreport()", env=env)
        found = json.loads(result.stdout)
        return found["stats"], found["account"]["parts"]

    return run


@pytest.mark.parametrize("setting", ["MEMRT_CACHE=0", "MEMRT_CHECK=1", "MEMRT_TRACK=1"])
@pytest.mark.parametrize("program", ["large arrays", "small arrays", "policies"])
def test_order_of_figures_holds_under_settings(run_reporting, program, setting):
    name, value = setting.split("=")
    stats, _ = run_reporting(program, **{name: value})
    check_order(stats)


@pytest.mark.parametrize("program", PROGRAMS)
def test_figures_agree_with_smaps(run_reporting, program):
    stats, parts = run_reporting(program)
    check_order(stats)
    of_memrt = ("arrays", "cached", "headers")
    resident = sum(parts[name]["resident"] for name in of_memrt if name in parts)
    assert stats["resident"] == pytest.approx(resident, rel=0.01, abs=MIB)
    mapped = sum(parts[name]["mapped"] or 0 for name in of_memrt if name in parts)
    addresses = stats["mapped"] + stats["retained"]
    assert addresses == pytest.approx(mapped, rel=0.01, abs=5 * MIB)


def test_rounding_is_the_part_beyond_data_and_headers():
    before = memrt.debug.memory_stats()
    kept = [memrt.alloc(1100) for _ in range(1000)]
    now = memrt.debug.memory_stats()
    assert now.requested - before.requested == 1100 * len(kept)
    parts = now.requested + now.headers + now.rounding
    assert parts == now.allocated or now.rounding == 0
    check_order(now.to_dict())


def test_repr_has_a_line_for_each_figure():
    stats = memrt.types.MemoryStats(*(MIB * n for n in range(13)), None)
    lines = repr(stats).splitlines()
    assert lines[0] == "memrt.types.MemoryStats:"
    assert [line.split()[0] for line in lines[1:]] == list(stats.to_dict())
    assert lines[2].split() == ["headers", "1.0", "MiB"]
    assert lines[-1].split() == ["huge_got", "?"]


def test_array_on_huge_pages_counts_as_asked():
    before = memrt.debug.memory_stats()
    with memrt.Policy(pages="thp"):
        array = np.ones(8 * MIB, "u1")
    now = memrt.debug.memory_stats()
    assert now.huge_asked - before.huge_asked >= array.nbytes
    assert now.huge_got is None or 0 <= now.huge_got <= now.huge_asked
