"""Measure alloc + touch + release through the table, against malloc and against Numba's NRT.

Usage: python tests/bench/bench.py [--rounds N]

All contenders run in one process, in turn within each round and in another order each round, so
that what disturbs the machine disturbs all of them. Figures are ratios to malloc of the same round.
Writes build/bench/alloc.json and docs/benchmarks.md.
"""

from __future__ import annotations

import argparse
import ctypes
import datetime
import json
import platform
import random
import statistics
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import memrt
import numba
import numpy as np
from numba.core.runtime import _nrt_python as nrt

ROOT = Path(__file__).resolve().parents[2]
OUT = ROOT / "build" / "bench"
SIZES = {"64 B": 64, "1 KiB": 1 << 10, "32 KiB": 1 << 15, "1 MiB": 1 << 20}
PATTERNS = {"one at a time": "loop_single", "64 at once": "loop_batch"}
ROUND_NS = 4_000_000  # aim for the time of one measurement
BATCH = 64
DATA_AT = 24  # offset of the data pointer in a MemInfo, memrt's and Numba's


class Functions(ctypes.Structure):
    """What loop.c calls: contender_t."""

    _fields_ = (
        ("alloc", ctypes.c_void_p),
        ("release", ctypes.c_void_p),
        ("data_at", ctypes.c_ssize_t),
    )


@dataclass
class Contender:
    """Somebody who makes buffers, and what must be done before it is measured."""

    name: str
    functions: Functions
    prepare: Callable[[], object] = lambda: None


def address(function: object) -> int:
    """Address of a function that ctypes found."""
    return ctypes.cast(function, ctypes.c_void_p).value


def memrt_slots() -> tuple[int, int]:
    """Addresses of the table's allocate and release."""
    library = ctypes.CDLL(memrt.get_library())
    library.memrt_get_api.restype = ctypes.POINTER(ctypes.c_void_p)
    table = library.memrt_get_api(ctypes.c_uint32(1), None)
    return table[0], table[4]


def contenders() -> list[Contender]:
    """Everybody who runs; the first is what the others are divided by."""
    libc = ctypes.CDLL(None)
    plain = Functions(address(libc.malloc), address(libc.free), -1)
    table = Functions(*memrt_slots(), DATA_AT)
    helpers = nrt.c_helpers
    numba_nrt = Functions(helpers["MemInfo_alloc"], helpers["MemInfo_release"], DATA_AT)
    return [
        Contender("malloc/free", plain),
        Contender("memrt table", table),
        Contender("NRT, statistics off", numba_nrt, nrt.memsys_disable_stats),
        Contender("NRT, statistics on", numba_nrt, nrt.memsys_enable_stats),
    ]


def build_loops() -> ctypes.CDLL:
    """Compile loop.c and load it."""
    OUT.mkdir(parents=True, exist_ok=True)
    target = OUT / "loop.so"
    source = Path(__file__).with_name("loop.c")
    command = ["cc", "-std=gnu11", "-O2", "-shared", "-fPIC", "-o", str(target), str(source)]
    subprocess.run(command, check=True)
    return ctypes.CDLL(str(target))


def measure(loop: Callable, contender: Contender, size: int, count: int) -> float:
    """Nanoseconds for one buffer."""
    contender.prepare()
    spent = loop(ctypes.byref(contender.functions), ctypes.c_size_t(size), ctypes.c_size_t(count))
    if spent == 0:
        raise MemoryError(f"{contender.name} could not allocate {size} bytes")
    return spent / count


def calibrate(loop: Callable, contender: Contender, size: int) -> int:
    """How many buffers take about one measurement's time; a multiple of a batch."""
    measure(loop, contender, size, BATCH)
    once = measure(loop, contender, size, 10 * BATCH)
    return max(BATCH, int(ROUND_NS / once) // BATCH * BATCH)


def run_case(loop: Callable, size: int, rounds: int) -> dict[str, list[float]]:
    """Nanoseconds for one buffer in each round, by contender."""
    field = contenders()
    counts = {contender.name: calibrate(loop, contender, size) for contender in field}
    times: dict[str, list[float]] = {contender.name: [] for contender in field}
    order = random.Random(size)
    for _ in range(rounds):
        for contender in order.sample(field, len(field)):
            times[contender.name].append(measure(loop, contender, size, counts[contender.name]))
    return times


def summarize(times: dict[str, list[float]]) -> dict[str, dict[str, float]]:
    """Median nanoseconds, and median and quartiles of the ratios to the first contender."""
    reference = next(iter(times.values()))
    summary = {}
    for name, own in times.items():
        ratios = [one / other for one, other in zip(own, reference, strict=True)]
        low, middle, high = statistics.quantiles(ratios, n=4)
        summary[name] = {
            "ns": statistics.median(own),
            "ratio": middle,
            "ratio_low": low,
            "ratio_high": high,
        }
    return summary


def machine() -> dict[str, str]:
    """Where and with what this was measured."""
    cpus = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    models = [line.split(":")[1].strip() for line in cpus if line.startswith("model name")]
    return {
        "date": datetime.date.today().isoformat(),
        "processor": f"{models[0] if models else platform.machine()}, {len(models)} cores",
        "system": f"{platform.system()} {platform.release()}, {' '.join(platform.libc_ver())}",
        "memrt": memrt.__version__,
        "numba": numba.__version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
    }


def section(pattern: str, cases: dict[str, dict]) -> list[str]:
    """Lines of one pattern's table."""
    names = list(next(iter(cases.values())))
    lines = [f"## {pattern.capitalize()}", "", "| size | " + " | ".join(names) + " |"]
    lines.append("|---" * (len(names) + 1) + "|")
    for size, summary in cases.items():
        first = summary[names[0]]
        cells = [f"{first['ns']:.0f} ns"]
        for name in names[1:]:
            own = summary[name]
            spread = f"{own['ratio_low']:.2f} to {own['ratio_high']:.2f}"
            cells.append(f"{own['ratio']:.2f} ({spread})")
        lines.append(f"| {size} | " + " | ".join(cells) + " |")
    return [*lines, ""]


def page(report: dict) -> str:
    """The report as a page."""
    lines = [
        "# Benchmarks",
        "",
        "Written by `./dev bench`; do not edit. A buffer is made, one byte is written on each of",
        "its pages, and it is given back. The first column is the median time for one buffer; the",
        f"others are medians of {report['rounds']} ratios to it, each from one round, with their",
        "quartiles. Both runtimes make a reference-counted buffer with a header, malloc does not;",
        "memrt's figures are with its statistics on, as always.",
        "",
    ]
    lines += [f"- {key}: {value}" for key, value in report["machine"].items()]
    lines.append("")
    for pattern, cases in report["patterns"].items():
        lines += section(pattern, cases)
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=25, help="measurements of each (default 25)")
    options = parser.parse_args()
    loops = build_loops()
    report = {"machine": machine(), "rounds": options.rounds, "patterns": {}}
    for pattern, function in PATTERNS.items():
        loop = getattr(loops, function)
        loop.restype = ctypes.c_uint64
        report["patterns"][pattern] = {
            name: summarize(run_case(loop, size, options.rounds)) for name, size in SIZES.items()
        }
    (OUT / "alloc.json").write_text(json.dumps(report, indent=1), encoding="utf-8")
    text = page(report)
    print(text)
    (ROOT / "docs" / "benchmarks.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
