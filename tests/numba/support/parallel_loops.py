"""Count the allocations of parallel loops, and print the counts as JSON.

Usage: python parallel_loops.py NAME ...

A process has one threading layer of Numba, which NUMBA_THREADING_LAYER names. Each case returns the
expected figures and the figures found.

No library counts the allocations of Numba's threads: the cases compare memrt's own statistics.
"""

from __future__ import annotations

import contextlib
import gc
import itertools
import json
import os
import sys
import threading
from collections.abc import Callable

import memrt
import memrt.numba

memrt.numba.install()

import numba  # noqa: E402 - Numba must be imported after install()
import numpy as np  # noqa: E402
from numba import njit, objmode, prange  # noqa: E402

CASES: dict[str, Callable[[], tuple[object, object]]] = {}
SIZE = 500
PLACES = ("nowhere", "policy", "scope", "both")


def case(function):
    CASES[function.__name__] = function
    return function


@njit(parallel=True)
def loop(out):
    for i in prange(out.size):
        out[i] = np.ones(i % 7 + 1).sum()


@njit(parallel=True)
def loop_of_containers(out):
    for i in prange(out.size):
        numbers = [i]
        numbers.append(i)
        out[i] = len(set(numbers)) + len(str(i))


@numba.vectorize(["float64(float64)"], target="parallel")
def ufunc(x):
    return np.full(3, x).sum()


@numba.guvectorize(["void(float64[:], float64[:])"], "(n)->(n)", target="parallel")
def gufunc(values, out):
    out[:] = values.copy()


@njit(nogil=True)
def without_gil(out):
    for i in range(out.size):
        out[i] = np.ones(i % 7 + 1).sum()


WORK = {"loop": loop, "ufunc": ufunc, "gufunc": gufunc, "nogil": without_gil}


def allocated(*sources) -> list[int]:
    return [source.stats().alloc for source in sources]


def counted(work: Callable[[], object], *sources) -> list[int]:
    """Return the allocations of each source during `work`, and of the whole process."""
    before = [*allocated(*sources), memrt.stats().alloc]
    work()
    after = [*allocated(*sources), memrt.stats().alloc]
    return [now - then for now, then in zip(after, before, strict=True)]


def count_at(place: str, work: Callable[[], object]) -> list[int]:
    """Return the allocations of `work` in a policy, in a scope, and in the process."""
    policy = memrt.Policy(name="count")
    with contextlib.ExitStack() as stack:
        if place in ("policy", "both"):
            stack.enter_context(policy)
        if place in ("policy", "nowhere"):
            of_policy, whole = counted(work, policy)
            return [of_policy, 0, whole]
        return counted(work, policy, stack.enter_context(memrt.scope("count")))


def expected_at(place: str, count: int, arguments: int = 1) -> list[int]:
    """Return the figures of count_at(). The MemInfo of an array argument has the default policy."""
    in_policy, in_scope = place in ("policy", "both"), place in ("scope", "both")
    return [count * in_policy, count * in_scope, count + arguments]


def count_kernel(kernel) -> tuple[object, object]:
    """Count a kernel in all places. Input and output exist before the count, except NumPy's."""
    values, out = np.zeros((SIZE, 3)), np.zeros(SIZE)
    arguments = {
        "ufunc": (values[:, 0], out),
        "gufunc": (values, np.zeros((SIZE, 3))),
    }.get(kernel, (out,))
    function = WORK[kernel]
    function(*arguments)
    places = (*PLACES, *reversed(PLACES))
    found = [count_at(place, lambda: function(*arguments)) for place in places]
    unboxed = 0 if kernel in ("ufunc", "gufunc") else 1
    return [expected_at(place, SIZE, unboxed) for place in places], found


for name in WORK:
    CASES[name] = lambda name=name: count_kernel(name)


@case
def containers():
    out = np.zeros(SIZE)
    loop_of_containers(out)
    whole = count_at("nowhere", lambda: loop_of_containers(out))[-1]
    found = [count_at(place, lambda: loop_of_containers(out)) for place in PLACES]
    assert whole >= 3 * SIZE
    return [expected_at(place, whole - 1) for place in PLACES], found


@case
def thread_counts():
    out, found = np.zeros(SIZE), []
    for count in (1, 2, 4):
        numba.set_num_threads(count)
        found.append(count_at("both", lambda: loop(out)))
    return [expected_at("both", SIZE)] * 3, found


# --- Errors ---


@njit
def checked(i):
    if i % 50 == 0:
        raise ValueError("planted")
    return np.ones(i % 7 + 1).sum()


@numba.vectorize(["float64(int64)"], target="parallel")
def raising_ufunc(i):
    return checked(i)


@njit(parallel=True)
def raising_loop(out):
    for i in prange(out.size):
        out[i] = checked(i)


@njit(nogil=True)
def raising_without_gil(out):
    for i in range(1, 101):
        out[i] = checked(i)


@case
def errors():
    """After chunks and calls that raise, no thread keeps a policy."""
    out = np.zeros(SIZE)
    policy = memrt.Policy(name="errors")
    sys.unraisablehook = lambda error: None

    def work():
        for call in (lambda: raising_ufunc(np.arange(SIZE)), lambda: raising_loop(out),
                     lambda: raising_without_gil(out)):  # fmt: skip
            with contextlib.suppress(ValueError, SystemError):  # Numba loses the class in loops
                call()

    work()
    with policy:
        inside = counted(work, policy)
    after = counted(lambda: (loop(out), without_gil(out)), policy)
    return [2, True, [0, 2 * SIZE + 2]], [inside[1] - inside[0], inside[0] > SIZE // 2, after]


# --- Changes of the policy ---


@case
def changing_policies():
    """A loop never uses the policy of an earlier loop, also if that policy is destroyed."""
    out = np.zeros(40)
    loop(out)
    found = []
    for number in range(60):
        policy = memrt.Policy(name=f"short {number}")
        with policy:
            found.append(counted(lambda: loop(out), policy))
        found.append(counted(lambda: loop(out), policy))
        del policy
        gc.collect()
    return [[40, 41], [0, 41]] * 60, found


@njit
def ones(n):
    return np.ones(n)


@njit(nogil=True)
def ones_without_gil(n):
    return np.ones(n)


def policies_of_calls() -> list[str]:
    return [memrt.meminfo(call(3)).policy for call in (ones, ones_without_gil)]


noted: list[list[str]] = []


def note_policies() -> None:
    """Note the policies outside and inside of a policy of this thread, and outside again."""
    names = policies_of_calls()
    with memrt.Policy(name="inner"):
        names += policies_of_calls()
    noted.append(names + policies_of_calls())


@njit(parallel=True)
def loop_with_python(out):
    for i in prange(out.size):
        kept = np.ones(3)
        with objmode():
            note_policies()
        out[i] = kept.sum() + np.ones(4).sum()


@njit(nogil=True)
def python_without_gil(out):
    for i in range(out.size):
        with objmode():
            note_policies()
        out[i] = np.ones(4).sum()


@case
def python_in_loops():
    """Compiled functions that Python calls inside of a chunk belong to the launch, too."""
    out, expected, found = np.zeros(8), [], []
    outer = memrt.Policy(name="outer")
    for work, place in itertools.product((loop_with_python, python_without_gil), (None, outer)):
        noted.clear()
        with place or contextlib.nullcontext():
            work(out)
        name = "outer" if place else "default"
        expected.append([[name] * 2 + ["inner"] * 2 + [name] * 2] * 8)
        found.append(list(noted))
    found.append(counted(lambda: (loop(np.zeros(40)), ones(3)), outer)[0])
    return [*expected, 0], found


# --- Several launches at a time ---


@njit(parallel=True)
def inner_loop(out):
    for i in prange(out.size):
        out[i] = np.ones(i + 1).sum()


@njit(parallel=True)
def nested_loop(out):
    for i in prange(out.shape[0]):
        before = np.ones(3 + i).sum()
        inner_loop(out[i])
        out[i, 0] = before + np.ones(5 + i).sum()


@case
def nested_loops():
    out = np.zeros((8, 20))
    nested_loop(out)
    found = [count_at(place, lambda: nested_loop(out)) for place in PLACES]
    return [expected_at(place, 8 * (20 + 2)) for place in PLACES], found


def run_threads(work: Callable[[int], object], count: int) -> list[object]:
    found: list[object] = [None] * count

    def keep(number: int) -> None:
        found[number] = work(number)

    threads = [threading.Thread(target=keep, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


@case
def concurrent_launches():
    """Each thread launches in a policy and a scope of its own, and the first thread in none."""
    out = np.zeros((8, 20))
    nested_loop(out)
    start = threading.Barrier(4)

    def work(number):
        own, policy = np.zeros((8, 20)), memrt.Policy(name=f"launch {number}")
        start.wait()
        if number == 0:
            for _ in range(30):
                nested_loop(own)
            return allocated(policy)
        with policy, memrt.scope(f"launch {number}") as scope:
            for _ in range(30):
                nested_loop(own)
            return allocated(policy, scope)

    whole = 30 * 8 * (20 + 2)
    return [[0]] + [[whole, whole]] * 3, run_threads(work, 4)


# --- Forks ---


@case
def forked_child():
    """A child counts its own loops. GNU OpenMP ends a child that runs a loop."""
    out, work = np.zeros(SIZE), without_gil if numba.threading_layer() == "omp" else loop
    loop(out), without_gil(out)
    policy = memrt.Policy(name="forked")
    reader, writer = os.pipe()
    with policy:
        loop(out)
        child = os.fork()
        if child == 0:
            numba.set_num_threads(2)
            found = counted(lambda: work(out), policy)
            os.write(writer, json.dumps(found).encode())
            os._exit(0)
    os.waitpid(child, 0)
    found = [json.loads(os.read(reader, 1000) or b"null"), counted(lambda: loop(out), policy)]
    return [[SIZE, SIZE + 1], [0, SIZE + 1]], found


if __name__ == "__main__":
    loop(np.zeros(1))
    results = {name: CASES[name]() for name in sys.argv[1:]}
    print(json.dumps({"layer": numba.threading_layer(), "cases": results}))
