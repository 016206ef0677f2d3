"""Time ways to collect doubles of unknown number, in this process.

usage: python growing.py JOB, a JSON object:

  cases     {case: [doubles in all, doubles of one addition; 1: Python floats]}
  turns     measurements of each way; the ways alternate, and the figure is the minimum

Prints {case: {way: nanoseconds for all doubles}}. Each way ends with an array over all doubles.
"""

from __future__ import annotations

import array
import json
import sys
import time
from collections.abc import Callable, Iterable

import memrt
import numpy as np

Way = Callable[[Iterable, bool], np.ndarray]  # the parts, and whether the parts are single floats


def with_buffer(parts: Iterable, single: bool) -> np.ndarray:
    found = memrt.types.Buffer(dtype="f8")
    add = found.append if single else found.extend
    for part in parts:
        add(part)
    return found.array


def with_list(parts: Iterable, single: bool) -> np.ndarray:
    found: list[float] = []
    add = found.append if single else found.extend
    for part in parts:
        add(part)
    return np.array(found)


def with_array(parts: Iterable, single: bool) -> np.ndarray:
    found = array.array("d")
    for part in parts:
        if single:
            found.append(part)
        else:
            found.frombytes(memoryview(part).cast("B"))
    return np.asarray(found)


def with_list_of_arrays(parts: Iterable, single: bool) -> np.ndarray:
    return np.concatenate([np.atleast_1d(part) for part in parts])


def with_numpy(parts: Iterable, single: bool) -> np.ndarray:
    found = np.empty(0)
    for part in parts:
        found = np.append(found, part)
    return found


WAYS: dict[str, Way] = {
    "list": with_list,
    "`array.array`": with_array,
    "list of arrays, `np.concatenate`": with_list_of_arrays,
    "`np.append`": with_numpy,
    "memrt": with_buffer,
}


def parts_of(count: int, size: int) -> list:
    if size == 1:
        return [float(number) for number in range(count)]
    return [np.arange(start, start + size, dtype="f8") for start in range(0, count, size)]


def nanoseconds(count: int, size: int, turns: int) -> dict[str, int]:
    """Return the processor time of each way, in nanoseconds for all doubles."""
    parts, expected = parts_of(count, size), np.arange(count)
    took: dict[str, list[int]] = {name: [] for name in WAYS}
    for _ in range(turns):
        for name, way in WAYS.items():
            begin = time.process_time_ns()
            found = way(parts, size == 1)
            took[name].append(time.process_time_ns() - begin)
            assert (found == expected).all()
    return {name: min(figures) for name, figures in took.items()}


if __name__ == "__main__":
    job = json.loads(sys.argv[1])
    cases = job["cases"].items()
    print(json.dumps({case: nanoseconds(*sizes, job["turns"]) for case, sizes in cases}))
