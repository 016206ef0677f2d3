"""Every creator meets every failure of an allocation: MemoryError, nothing lost, usable again."""

import ctypes
import gc
import itertools
import threading

import memrt
import numpy as np
import pytest
from memrt.testing import fail_allocations


class Memory:
    """Foreign bytes."""

    def __init__(self):
        self.bytes = ctypes.create_string_buffer(64)

    def wrap(self):
        return memrt.wrap(ctypes.addressof(self.bytes), 64, lambda *_: None, self, name="w")


def renamed():
    mi = memrt.alloc(10)
    mi.name = "a name"
    return mi


def block_meminfo():
    with memrt.Policy():
        a = np.ones(10)
    return memrt.meminfo(a)


def resized():
    with memrt.Policy():
        a = np.ones(10)
        a.resize(10_000, refcheck=False)
    return a


def resized_while_shared():
    with memrt.Policy():
        a = np.ones(10)
    held = memrt.meminfo(a)
    a.resize(10_000, refcheck=False)
    return a, held


def enabled():
    memrt.enable(memrt.Policy())
    try:
        return np.ones(10)
    finally:
        memrt.disable()


def tracked():
    with memrt.tracking():
        return memrt.alloc(10, name="t"), memrt.live()


CREATORS = {
    "alloc": lambda: memrt.alloc(100),
    "alloc, aligned, zeroed, named": lambda: memrt.alloc(100, 4096, True, name="n"),
    "alloc, large": lambda: memrt.alloc(10 * 2**20),
    "wrap": lambda: Memory().wrap(),
    "name": renamed,
    "empty": lambda: memrt.empty((3, 4)),
    "zeros": lambda: memrt.zeros((3, 4)),
    "zeros, large": lambda: memrt.zeros(10 * 2**20),
    "full": lambda: memrt.full((3, 4), 7),
    "array": lambda: memrt.array([[1, 2], [3, 4]]),
    "array of objects": lambda: memrt.array([[], {}], object),
    "as_array": lambda: memrt.as_array(memrt.alloc(80), 10, "f8"),
    "adopt in place": lambda: memrt.adopt(np.ones(10)),
    "adopt by copy": lambda: memrt.adopt(np.frombuffer(bytes(80))),
    "meminfo of a block": block_meminfo,
    "policy": lambda: memrt.Policy(128, "p"),
    "np.ones under a policy": resized,
    "resize of a shared block": resized_while_shared,
    "enable": enabled,
    "tracking": tracked,
    "policies": lambda: [memrt.Policy(), memrt.policies()],
    "capsule": lambda: memrt.alloc(10).__memrt_meminfo__(),
    "stats": memrt.stats,
}


def books():
    gc.collect()
    stats = memrt.stats()
    return (stats.alloc - stats.free, stats.mi_alloc - stats.mi_free, stats.live, stats.adopted,
            len(memrt.policies()), memrt.handler_name(), len(memrt.live()))  # fmt: skip


@pytest.mark.parametrize("this_thread", [False, True])
@pytest.mark.parametrize("every", [None, 1])
@pytest.mark.parametrize("name", CREATORS)
def test_each_failing_request_is_a_memory_error_and_nothing_is_lost(name, every, this_thread):
    create, before = CREATORS[name], books()
    for nth in itertools.count(1):
        with fail_allocations(nth, every, this_thread) as plan:
            try:
                result = create()
            except MemoryError:
                assert plan.points >= nth
            else:
                del result
                if plan.points < nth:
                    break
        assert books() == before
        create()
        assert books() == before
    assert books() == before


def test_every_creator_that_allocates_has_a_point_of_failure():
    points = {}
    for name, create in CREATORS.items():
        with fail_allocations(10**9) as plan:
            create()
        points[name] = plan.points
    assert points.pop("stats") == 0
    assert all(points.values()), points


def test_nth_and_every_choose_which_requests_fail():
    def outcome(**plan):
        with fail_allocations(**plan):
            return "".join("x" if failed(memrt.alloc) else "." for _ in range(9))

    def failed(create):
        try:
            create(10)
        except MemoryError:
            return True
        return False

    assert outcome() == "x........"
    assert outcome(nth=4) == "...x....."
    assert outcome(nth=4, every=1) == "...xxxxxx"
    assert outcome(nth=2, every=3) == ".x..x..x."
    assert outcome(nth=10) == "........."


def test_requests_of_other_threads_neither_count_nor_fail_for_this_thread():
    with fail_allocations(1, 1, this_thread=True) as plan:
        errors = []

        def work():
            try:
                memrt.alloc(10)
            except MemoryError as error:
                errors.append(error)

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        assert plan.points == 0
        with pytest.raises(MemoryError):
            memrt.alloc(10)
    assert errors == []
    assert plan.points == 1


def test_the_plan_ends_with_its_block_also_by_exception():
    with pytest.raises(MemoryError), fail_allocations(every=1):
        memrt.alloc(10)
    memrt.alloc(10)


@pytest.mark.parametrize("plan", [{"nth": 0}, {"nth": -1}, {"every": 0}, {"every": -3}])
def test_plans_that_make_no_sense_are_refused(plan):
    with pytest.raises(ValueError, match="got"):
        fail_allocations(**plan)


def test_plans_cannot_be_nested():
    with fail_allocations(10) as outer:
        with pytest.raises(RuntimeError, match="already"), fail_allocations():
            pass
        memrt.alloc(10)
        assert outer.points == 1


NO_MEMORY = """
import sys, memrt, numpy as np
try:
    import _testcapi
    _testcapi.set_nomemory
except (ImportError, AttributeError):
    print("no _testcapi"); sys.exit()

mi, source, block = memrt.alloc(80), np.ones(10), None
policy = memrt.Policy()
with policy:
    block = np.ones(10)
class Owner: pass
owner = Owner()
created = {
    "alloc": lambda: memrt.alloc(100),
    "wrap": lambda: memrt.wrap(mi.data, 80, print_nothing, owner),
    "empty": lambda: memrt.empty((3, 4)),
    "as_array": lambda: memrt.as_array(mi, (2, 5), "f8"),
    "meminfo": lambda: memrt.meminfo(block),
    "capsule": lambda: mi.__memrt_meminfo__(),
    "adopt": lambda: memrt.adopt(np.ones(10)),
    "policy": lambda: memrt.Policy(),
    "stats": lambda: memrt.stats(),
    "live": lambda: memrt.live(),
    "object array": lambda: memrt.empty(3, object),
}
def print_nothing(address, nbytes): pass
def books():
    s = memrt.stats()
    return s.alloc - s.free, s.mi_alloc - s.mi_free, s.live, s.adopted, mi.refcount

for name, create in created.items():
    create()
    before = books()
    failures, nth, last = 0, 0, 0
    while nth < last + 30:  # some failures are made up for by Python itself
        nth += 1
        taken = [memrt.alloc(1) for _ in range(64)]  # no object of a dead one is left to be used
        _testcapi.set_nomemory(nth - 1, nth)  # the nth one fails
        try:
            result = create()
        except MemoryError:
            failures, last = failures + 1, nth
        _testcapi.remove_mem_hooks()
        result = taken = None
        assert books() == before, (name, nth)
        create()
    assert failures, name
print("done")
"""


def test_pythons_own_failures_inside_the_extension_lose_nothing(run_python):
    result = run_python(NO_MEMORY)
    if "no _testcapi" in result.stdout:
        pytest.skip("this Python has no _testcapi")
    assert result.stdout.strip() == "done"
