"""Leaks and growth."""

import gc
import subprocess
import sys
import threading

import memrt
import numpy as np
import pytest
from memrt import _memrt


def make(size=5001):
    return memrt.alloc(size)  # the birth


def checked(body):
    with memrt.assert_no_leaks():
        body()


def leaks_of(body):
    """The error that a block raises which runs this."""
    with pytest.raises(memrt.LeakError) as caught:
        checked(body)
    return caught.value


def test_a_block_that_leaves_nothing_behind_passes():
    with memrt.assert_no_leaks():
        a = make()
        del a


def test_what_is_left_is_told_with_its_place_its_callers_and_its_age():
    kept = []

    def leave_four():
        kept.extend([make(), make(), make(), memrt.alloc(10, name="small")])

    error = leaks_of(leave_four)
    message = str(error)
    assert message.startswith("4 buffers born in this block are still live, 14.7 KiB:\n")
    assert "\n  14.7 KiB in 3 buffers born in make at " in message
    assert "\n      called from test_what_is_left" in message
    assert "leave_four at " in message
    assert "\n      the largest is 4.9 KiB, " in message
    assert "\n      it is 'small', 10 B, " in message
    groups = [(len(g.buffers), g.nbytes) for g in error.groups]
    assert groups == [(3, 15003), (1, 10)]
    assert error.groups[0].place.function == "make"
    assert isinstance(error, AssertionError)


def test_cycles_are_no_leaks():
    class Node:
        pass

    with memrt.assert_no_leaks():
        node = Node()
        node.itself, node.buffer = node, make()
        del node


def test_what_was_there_before_and_what_is_named_may_stay():
    before = make()
    with memrt.assert_no_leaks() as block:
        result = make()
        block.allow(result)
    assert before.size == result.size


def test_arrays_of_numpys_count_under_a_policy():
    kept = []
    with memrt.Policy(name="leaky"):
        assert "policy leaky" in str(leaks_of(lambda: kept.append(np.ones(1000))))


def test_an_error_on_its_way_out_is_left_alone():
    kept = []

    def fail():
        kept.append(make())
        raise KeyError

    with pytest.raises(KeyError):
        checked(fail)


def test_a_function_is_checked_at_every_call():
    kept = []

    @memrt.assert_no_leaks()
    def work(leaks):
        if leaks:
            kept.append(make())
        return leaks

    assert work(False) is False
    with pytest.raises(memrt.LeakError):
        work(True)
    assert work(False) is False


def test_blocks_nest_and_each_tells_its_own():
    kept = []

    def outer():
        kept.append(make())
        error = leaks_of(lambda: kept.append(make()))
        assert str(error).startswith("1 buffer born in this block is still live, ")

    assert str(leaks_of(outer)).startswith("2 buffers ")


def test_births_on_other_threads_count():
    kept = []

    def work():
        thread = threading.Thread(target=lambda: kept.append(make()))
        thread.start()
        thread.join()

    assert "born in make" in str(leaks_of(work))


def test_many_places_are_cut_after_those_that_hold_most():
    kept, namespace = [], {"memrt": memrt}
    lines = "\n".join(f"    yield memrt.alloc({1000 * (i + 1)})" for i in range(9))
    exec(compile(f"def births():\n{lines}", "<births>", "exec"), namespace)
    message = str(leaks_of(lambda: kept.extend(namespace["births"]())))
    assert "8.8 KiB in 1 buffer born in births at <births>:10" in message
    assert "\n  and 9.8 KiB at 4 more places" in message
    assert "<births>:5" not in message


def test_what_is_expected_to_last_is_no_leak():
    namespace = {"memrt": memrt}
    exec(compile("def cached():\n    return memrt.alloc(9)", "<lasts>", "exec"), namespace)
    memrt.expect_to_last("cached at <lasts>:*", "the cache of a test")
    with memrt.assert_no_leaks():
        kept = namespace["cached"]()
    assert kept.size == 9


def test_whether_it_lasts_is_asked_once_a_place_however_many_buffers_are_left(monkeypatch):
    asked = []

    def lasting_at(site, ask=_memrt.lasting_at):
        asked.append(site)
        return ask(site)

    monkeypatch.setattr(_memrt, "lasting_at", lasting_at)
    kept = []
    leaks_of(lambda: kept.extend(make() for _ in range(100)))
    assert len(asked) == len(set(asked)) == 1


@pytest.mark.parametrize("arguments", [("", "what"), ("pattern", ""), ("x" * 300, "what")])
def test_patterns_that_cannot_be_are_refused(arguments):
    with pytest.raises(ValueError, match=r"cannot expect .* to last"):
        memrt.expect_to_last(*arguments)


NUMPYS = """
import memrt
memrt.enable()
with memrt.assert_no_leaks():
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


def test_numpys_own_lasting_buffers_are_no_leaks():
    result = subprocess.run([sys.executable, "-c", NUMPYS], capture_output=True, text=True)
    assert (result.stdout, result.stderr) == ("nothing leaked\n", "")


# --- Growth. ---


def test_a_function_that_keeps_something_grows_at_the_place_and_scope_of_birth():
    kept = []

    def leaky():
        np.ones(10)
        with memrt.scope("leaking"):
            kept.append(make(2000))

    found = memrt.growth(leaky)
    assert found
    (trend,) = found.growing
    assert trend.what.startswith("make at ")
    assert (trend.slope, len(trend.bytes), trend.bytes[-1]) == (2000, 24, 48_000)
    assert [(t.what, t.slope, t.is_growing) for t in found.scopes] == [
        ("scope leaking", 2000, True)
    ]
    assert "+2.0 KiB a round, 46.9 KiB after 24 rounds" in repr(found)
    assert found.to_dict()["places"][0]["is_growing"] is True


def test_growth_tells_who_holds_the_newest_of_what_grows_most():
    kept = []
    namespace = {"memrt": memrt, "kept": kept}
    lines = "\n".join(f"    kept.append(memrt.alloc({1000 - i}))" for i in range(7))
    exec(compile(f"def fill():\n{lines}", "<fill>", "exec"), namespace)
    found = memrt.growth(namespace["fill"], rounds=12)
    assert [trend.newest is not None for trend in found.growing] == [True] * 5 + [False] * 2
    assert found.places[0].newest.size == 1000
    assert all(trend.newest is None for trend in [*found.scopes, found.total])
    assert found.to_dict()["places"][0]["newest"]["size"] == 1000
    lines = repr(found).splitlines()
    assert lines[2:4] == ["      the newest is 1000 B, refcount 1", "      └─ memrt.MemInfo"]
    assert lines[4].startswith("         └─ `kept[77]` in test_growth_tells")


def test_a_function_that_keeps_nothing_does_not_grow():
    found = memrt.growth(make, 100)
    assert not found
    assert repr(found) == "memrt.Growth: nothing grows in 24 rounds; 0 B are left"


def test_a_cache_that_fills_and_stays_does_not_grow():
    cache = {}

    def cached():
        number = len(cache) % 100
        if number < 9:
            cache[number] = make()

    found = memrt.growth(cached)
    (trend,) = found.places
    assert not found
    assert trend.bytes[-1] == 9 * 5001
    assert "not growing" in repr(trend)


def test_what_goes_up_and_down_does_not_grow():
    kept = []

    def breathe():
        kept.append(make())
        if len(kept) == 4:
            kept.clear()

    assert not memrt.growth(breathe)


def test_a_slow_leak_among_noise_grows():
    kept, calls = [], []

    def noisy():
        calls.append(None)
        kept.append(make(100))
        if len(calls) % 2:
            kept.append(memrt.alloc(1))

    found = memrt.growth(noisy, rounds=40)
    assert {trend.what.split(" at ")[0] for trend in found.growing} >= {"make"}


def test_too_few_rounds_are_refused():
    with pytest.raises(ValueError, match="rounds must be at least 12 to show a trend, not 3"):
        memrt.growth(make, rounds=3)


def test_an_error_of_the_function_comes_through_and_ends_the_rounds():
    calls = []

    def fails():
        calls.append(None)
        raise KeyError("stop")

    was = memrt._memrt.tracking_get()
    with pytest.raises(KeyError, match="stop"):
        memrt.growth(fails)
    assert len(calls) == 1
    assert memrt._memrt.tracking_get() == was
    gc.collect()


def test_reports_tell_who_holds_the_largest_of_each_place():
    global held_here
    error = leaks_of(hold_here)
    del held_here
    assert "└─ memrt.MemInfo" in str(error)
    assert f"{__name__}.held_here" in str(error)


def hold_here():
    global held_here
    held_here = make()


def test_holders_takes_what_live_listed_as_long_as_it_is_there():
    with memrt.tracking():
        mi = make()
    (buffer,) = [b for b in memrt.live() if b.address == mi.data]
    found = memrt.holders(buffer)
    assert (found.size, found.address, found.refcount) == (5001, mi.data, 1)
    del mi
    gc.collect()
    with pytest.raises(LookupError, match="the buffer at 0x"):
        memrt.holders(buffer)
