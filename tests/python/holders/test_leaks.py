"""Leaks and growth."""

import gc
import subprocess
import sys
import threading

import memrt
import numpy as np
import pytest
from gil import needs_gil
from memrt import _memrt
from memrt._leaks import leaks


def make(size=5001):
    return memrt.alloc(size)  # the allocation site


def checked(body):
    with memrt.debug.assert_no_leaks():
        body()


def leaks_of(body):
    """Return the LeakError of a leak check around `body`."""
    with pytest.raises(memrt.debug.LeakError) as caught:
        checked(body)
    return caught.value


def test_block_without_leaks_passes():
    with memrt.debug.assert_no_leaks():
        a = make()
        del a


def test_leak_error_shows_site_callers_and_largest_buffer():
    kept = []

    def leave_four():
        kept.extend([make(), make(), make(), memrt.alloc(10, name="small")])

    error = leaks_of(leave_four)
    message = str(error)
    assert message.startswith("4 buffers allocated in this block are still live, 14.7 KiB:\n")
    assert "\n  14.7 KiB in 3 buffers allocated in make at " in message
    assert "\n      called from test_leak_error_shows" in message
    assert "leave_four at " in message
    assert "\n      largest buffer: 4.9 KiB, " in message
    assert "\n      buffer: 'small', 10 B, " in message
    groups = [(len(g.buffers), g.nbytes) for g in error.groups]
    assert groups == [(3, 15003), (1, 10)]
    assert error.groups[0].place.function == "make"
    assert isinstance(error, AssertionError)


def refuse(*_):
    raise RuntimeError("no search today: start with another option")


def test_leak_error_states_why_holders_were_not_searched(monkeypatch):
    monkeypatch.setattr(_memrt, "survey", refuse)
    kept = []
    lines = str(leaks_of(lambda: kept.append(make()))).splitlines()
    assert any(line.startswith("      buffer: 4.9 KiB, ") for line in lines)
    assert not any("held by" in line for line in lines)
    assert lines[-1] == "  no search today: start with another option"


def test_growth_without_a_search_has_no_holders(monkeypatch):
    kept = []
    monkeypatch.setattr(_memrt, "find_holders", refuse)
    found = memrt.debug.growth(lambda: kept.append(make()))
    (trend,) = found.growing
    assert trend.newest is None
    assert trend.slope == 5001


def test_unreachable_cycle_is_not_a_leak():
    class Node:
        pass

    with memrt.debug.assert_no_leaks():
        node = Node()
        node.itself, node.buffer = node, make()
        del node


def test_earlier_and_allowed_buffers_are_not_leaks():
    before = make()
    with memrt.debug.assert_no_leaks() as block:
        result = make()
        block.allow(result)
    assert before.nbytes == result.nbytes


def test_numpy_array_of_a_policy_is_a_leak():
    kept = []
    with memrt.Policy(name="leaky"):
        assert "policy leaky" in str(leaks_of(lambda: kept.append(np.ones(1000))))


def test_leak_check_lets_an_exception_pass():
    kept = []

    def fail():
        kept.append(make())
        raise KeyError

    with pytest.raises(KeyError):
        checked(fail)


def test_decorated_function_is_checked_at_every_call():
    kept = []

    @memrt.debug.assert_no_leaks()
    def work(leaks):
        if leaks:
            kept.append(make())
        return leaks

    assert work(False) is False
    with pytest.raises(memrt.debug.LeakError):
        work(True)
    assert work(False) is False


def test_outer_block_also_counts_leaks_of_the_inner_block():
    kept = []

    def outer():
        kept.append(make())
        error = leaks_of(lambda: kept.append(make()))
        assert str(error).startswith("1 buffer allocated in this block is still live, ")

    assert str(leaks_of(outer)).startswith("2 buffers ")


def test_allocation_of_another_thread_is_a_leak():
    kept = []

    def work():
        thread = threading.Thread(target=lambda: kept.append(make()))
        thread.start()
        thread.join()

    assert "allocated in make" in str(leaks_of(work))


def listed(number, size, weight):
    """Return a row of live() for a sampled buffer."""
    fields = dict.fromkeys(memrt.types.LiveBuffer._fields, 0)
    return memrt.types.LiveBuffer(**{**fields, "id": number, "nbytes": size, "weight": weight})


def test_leak_groups_count_bytes_by_sampling_weight():
    sample = [listed(1, 100, 2.5), listed(2, 1000, 4.0), listed(3, 5000, 0)]
    (found,) = leaks.group(sample)
    assert found.nbytes == 100 * 2.5 + 1000 * 4
    assert [buffer.id for buffer in found.buffers] == [2, 1]
    assert leaks.amount([found]) == (2, 4250)
    assert str(found).startswith("4.2 KiB in 2 buffers ")


def test_sampled_leaks_are_estimated_within_a_third():
    kept = []
    with memrt.debug.tracking(sample="64K"):
        begin = _memrt.tracking_allocations()
        kept.extend(memrt.alloc(1000) for _ in range(40_000))
        found = leaks.group(leaks.allocated_since(begin))
    assert sum(len(each.buffers) for each in found) < 4000
    assert 0.67 * 40_000_000 < leaks.amount(found)[1] < 1.33 * 40_000_000


def test_leak_error_shows_only_the_largest_sites():
    kept, namespace = [], {"memrt": memrt}
    lines = "\n".join(f"    yield memrt.alloc({1000 * (i + 1)})" for i in range(9))
    exec(compile(f"def allocs():\n{lines}", "<allocs>", "exec"), namespace)
    message = str(leaks_of(lambda: kept.extend(namespace["allocs"]())))
    assert "8.8 KiB in 1 buffer allocated in allocs at <allocs>:10" in message
    assert "\n  and 9.8 KiB at 4 more source lines" in message
    assert "<allocs>:5" not in message


def test_suppressed_buffer_is_not_a_leak():
    namespace = {"memrt": memrt}
    exec(compile("def cached():\n    return memrt.alloc(9)", "<lasts>", "exec"), namespace)
    memrt.debug.suppress_leaks("cached at <lasts>:*", "the cache of a test")
    with memrt.debug.assert_no_leaks():
        kept = namespace["cached"]()
    assert kept.nbytes == 9


def test_suppressions_are_checked_once_per_site(monkeypatch):
    asked = []

    def suppression_at(site, ask=_memrt.suppression_at):
        asked.append(site)
        return ask(site)

    monkeypatch.setattr(_memrt, "suppression_at", suppression_at)
    kept = []
    leaks_of(lambda: kept.extend(make() for _ in range(100)))
    assert len(asked) == len(set(asked)) == 1


@pytest.mark.parametrize("arguments", [("", "what"), ("pattern", ""), ("x" * 300, "what")])
def test_invalid_suppressions_are_refused(arguments):
    with pytest.raises(ValueError, match=r"cannot add suppression .* with description"):
        memrt.debug.suppress_leaks(*arguments)


NUMPYS = """
import memrt
memrt.enable()
with memrt.debug.assert_no_leaks():
    import numpy as np
    import numpy.ma, numpy.polynomial, numpy.random, numpy.fft, numpy.linalg
    for kind in (np.float16, np.float32, np.float64, np.longdouble, np.complex64, np.complex128):
        np.finfo(kind)
    for kind in (np.int8, np.uint64):
        np.iinfo(kind)
    a = np.random.default_rng(1).normal(size=(50, 50))
    np.random.seed(3); np.random.rand(10); np.random.permutation(10)
    np.linalg.svd(a); np.fft.fft(a); np.einsum("ij,jk", a, a, optimize=True); np.ma.masked_array(a)
    np.polynomial.Polynomial([1, 2])(a); np.sort(a); np.unique(a); np.histogram(a)
    str(a); repr(np.array(["a", "b"])); np.array([object()]); np.array([1, 2], dtype="M8[s]")
    np.loadtxt(["1 2", "3 4"]); np.vectorize(lambda x: x)(a); np.bincount([1, 2]); a @ a
    np.testing.assert_allclose(a, a); np.save("/dev/null", a)
    del a
print("nothing leaked")
"""


def test_internal_numpy_caches_are_not_leaks():
    result = subprocess.run([sys.executable, "-c", NUMPYS], capture_output=True, text=True)
    assert (result.stdout, result.stderr) == ("nothing leaked\n", "")


# --- Growth. ---


def test_growth_finds_the_site_and_scope_of_a_leak():
    kept = []

    def leaky():
        np.ones(10)
        with memrt.scope("leaking"):
            kept.append(make(2000))

    found = memrt.debug.growth(leaky)
    assert found
    (trend,) = found.growing
    assert trend.name.startswith("make at ")
    assert (trend.slope, len(trend.bytes), trend.bytes[-1]) == (2000, 24, 48_000)
    assert [(t.name, t.slope, t.is_growing) for t in found.scopes] == [
        ("scope leaking", 2000, True)
    ]
    assert "+2.0 KiB a round, 46.9 KiB after 24 rounds" in repr(found)
    assert found.to_dict()["places"][0]["is_growing"] is True


@needs_gil
def test_growth_shows_newest_buffer_of_the_top_5_sites():
    kept = []
    namespace = {"memrt": memrt, "kept": kept}
    lines = "\n".join(f"    kept.append(memrt.alloc({1000 - i}))" for i in range(7))
    exec(compile(f"def fill():\n{lines}", "<fill>", "exec"), namespace)
    found = memrt.debug.growth(namespace["fill"], rounds=12)
    assert [trend.newest is not None for trend in found.growing] == [True] * 5 + [False] * 2
    assert found.places[0].newest.nbytes == 1000
    assert all(trend.newest is None for trend in [*found.scopes, found.total])
    assert found.to_dict()["places"][0]["newest"]["nbytes"] == 1000
    lines = repr(found).splitlines()
    assert lines[2:4] == ["      newest buffer: 1000 B, refcount 1", "      └─ memrt.MemInfo"]
    assert lines[4].startswith("         └─ `kept[77]` in test_growth_shows")


def test_function_without_leaks_does_not_grow():
    found = memrt.debug.growth(make, 100)
    assert not found
    assert (
        repr(found) == "memrt.types.Growth: no source line grows in 24 rounds; 0 B live at the end"
    )


def test_full_cache_does_not_count_as_growth():
    cache = {}

    def cached():
        number = len(cache) % 100
        if number < 9:
            cache[number] = make()

    found = memrt.debug.growth(cached)
    (trend,) = found.places
    assert not found
    assert trend.bytes[-1] == 9 * 5001
    assert "not growing" in repr(trend)


def test_fluctuating_memory_does_not_count_as_growth():
    kept = []

    def breathe():
        kept.append(make())
        if len(kept) == 4:
            kept.clear()

    assert not memrt.debug.growth(breathe)


def test_growth_finds_a_slow_leak_in_noise():
    kept, calls = [], []

    def noisy():
        calls.append(None)
        kept.append(make(100))
        if len(calls) % 2:
            kept.append(memrt.alloc(1))

    found = memrt.debug.growth(noisy, rounds=40)
    assert {trend.name.split(" at ")[0] for trend in found.growing} >= {"make"}


def test_growth_refuses_too_few_rounds():
    with pytest.raises(ValueError, match="rounds must be at least 12 to show a trend, got 3"):
        memrt.debug.growth(make, rounds=3)


def test_growth_stops_at_and_passes_on_an_exception():
    calls = []

    def fails():
        calls.append(None)
        raise KeyError("stop")

    was = memrt._memrt.tracking_get()
    with pytest.raises(KeyError, match="stop"):
        memrt.debug.growth(fails)
    assert len(calls) == 1
    assert memrt._memrt.tracking_get() == was
    gc.collect()


@needs_gil
def test_leak_error_shows_the_holder_of_a_buffer():
    global held_here
    error = leaks_of(hold_here)
    del held_here
    assert "└─ memrt.MemInfo" in str(error)
    assert f"{__name__}.held_here" in str(error)


def hold_here():
    global held_here
    held_here = make()


@needs_gil
def test_holders_accepts_a_listed_buffer_until_freed():
    with memrt.debug.tracking():
        mi = make()
    (buffer,) = [b for b in memrt.debug.live() if b.address == mi.address]
    found = memrt.holders(buffer)
    assert (found.nbytes, found.address, found.refcount) == (5001, mi.address, 1)
    del mi
    gc.collect()
    with pytest.raises(LookupError, match="the buffer at 0x"):
        memrt.holders(buffer)


def test_exit_of_an_unopened_block_keeps_the_exception():
    block = memrt.debug.assert_no_leaks()
    block.__exit__(ZeroDivisionError, ZeroDivisionError(), None)
    with pytest.raises(RuntimeError, match="without being entered"):
        block.__exit__()
