"""Plans for fault injection. tests/failures uses the plans to find faults."""

import contextlib
import re
import threading

import memrt
import numpy as np
import pytest
from memrt import _memrt
from memrt.testing import exhaust, fail_allocations


def test_nth_and_every_choose_which_requests_fail():
    def outcome(**plan):
        with fail_allocations(kind="meminfo", **plan):
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


def test_this_thread_plan_ignores_requests_of_other_threads():
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


def test_fault_injection_ends_when_its_block_raises():
    with pytest.raises(MemoryError), fail_allocations(every=1):
        memrt.alloc(10)
    memrt.alloc(10)


@pytest.mark.parametrize("plan", [{"nth": 0}, {"nth": -1}, {"every": 0}, {"every": -3}])
def test_fault_injection_refuses_nth_or_every_below_1(plan):
    with pytest.raises(ValueError, match="got"):
        fail_allocations(**plan)


def test_nested_fault_injection_raises_and_keeps_outer_plan():
    with fail_allocations(10, kind="meminfo") as outer:
        with pytest.raises(RuntimeError, match="already"), fail_allocations():
            pass
        memrt.alloc(10)
        assert outer.points == 1


def test_requests_for_a_new_allocation_site_do_not_count():
    def points(file):
        with fail_allocations(10**9, this_thread=True) as plan:
            exec(compile("memrt.alloc(10)", file, "exec"), {"memrt": memrt})
        return plan.points

    with memrt.debug.tracking(frames=4):
        _kept = [memrt.alloc(10) for _ in range(500)]  # each part of the live set has a table
        points("old site")
        assert points("old site") == points("new site") == 1  # the MemInfo


def test_kind_and_size_select_the_requests_that_fail():
    with memrt.Policy(), fail_allocations(every=1, kind="block", min_size="4 KiB") as plan:
        np.ones(10)
        memrt.alloc(10_000)
        with pytest.raises(MemoryError):
            np.ones(1000)
        with pytest.raises(MemoryError):
            np.ones(2000)
    assert (plan.points, plan.failed, plan.kind, plan.nbytes) == (2, 2, "block", 8000)
    assert "2 of 2 requests failed" in repr(plan)


def test_max_size_selects_smaller_requests():
    with fail_allocations(every=1, kind=("meminfo", "resize"), max_size=100) as plan:
        memrt.alloc(101)
        with pytest.raises(MemoryError):
            memrt.alloc(100)
    assert plan.kind == "meminfo"


def test_growth_of_an_array_is_a_resize():
    with memrt.Policy():
        array = np.ones(1000)
    with fail_allocations(every=1, kind="resize") as plan, pytest.raises(MemoryError):
        array.resize(200_000, refcheck=False)
    assert (plan.kind, plan.nbytes, len(array)) == ("resize", 1_600_000, 1000)


def test_policy_and_scope_select_the_requests_that_fail():
    policy = memrt.Policy(name="chosen")
    with memrt.scope("chosen") as scope:
        pass
    with policy, fail_allocations(every=1, policy=policy, scope=scope) as plan:
        np.ones(10)
        with memrt.scope("chosen"):
            memrt.empty(10, policy=memrt.debug.default_policy())
            with memrt.scope("inner"), pytest.raises(MemoryError):
                np.ones(10)
            with pytest.raises(MemoryError):
                np.ones(20)
    assert (plan.points, plan.nbytes) == (2, 80)


@pytest.mark.parametrize(
    ("select", "error", "message"),
    [
        ({"kind": "blocks"}, ValueError, "kind must be one of 'block', "),
        ({"min_size": 2, "max_size": 1}, ValueError, "max_size must be at least 1 and min_size, 2"),
        ({"max_size": 0}, ValueError, "got 0"),
        ({"min_size": -1}, ValueError, "min_size must be at least 0"),
        ({"min_size": 1.5}, TypeError, "min_size must be a whole number"),
        ({"policy": "default"}, TypeError, "policy must be a memrt.Policy or None, got str"),
        ({"scope": "load"}, TypeError, "scope must be a Scope or None, got str"),
    ],
)
def test_bad_selection_is_refused(select, error, message):
    with pytest.raises(error, match=re.escape(message)):
        fail_allocations(**select)
    with pytest.raises(error, match=re.escape(message)):
        exhaust(list, **select)


def test_extension_refuses_other_objects_as_policy_and_scope():
    for objects in ((b"", None), (None, b"")):
        with pytest.raises((TypeError, ValueError)):
            _memrt.fail_allocations(1, 0, True, 0, 0, 0, *objects)
    with pytest.raises(ValueError, match="cannot start"):
        _memrt.fail_allocations(1, 0, True, 1 << 20, 0, 0, None, None)


def test_exhaust_reports_each_failure_point():
    def work():
        first = np.empty(1000)
        try:
            second = np.empty(2000)
        except MemoryError:
            second = first
        return len(second)

    result = exhaust(work, kind="block")
    assert [(each.point, each.kind, each.nbytes) for each in result.outcomes] == [
        (1, "block", 8000),
        (2, "block", 16000),
    ]
    assert result.outcomes[0].error.startswith("MemoryError: ")
    assert re.fullmatch(r"\w+\.py:\d+", result.outcomes[0].place)
    assert (result.outcomes[1].error, result.outcomes[1].result) == (None, "1000")
    assert result.problems == ()
    assert result.summary == "2 failure points: 1 raised MemoryError, 1 returned"
    assert "failure points: 1 raised" in repr(result)
    assert str(result).count("\n") == 2
    assert "resize" not in repr(result.outcomes[0])


def test_exhaust_finds_blocks_that_a_failure_leaves():
    kept = []

    def leak():
        kept.append(memrt.alloc(1000))
        memrt.alloc(2000)
        kept.clear()

    result = exhaust(leak, kind="meminfo")
    assert [each.leaked for each in result.outcomes] == [0, 1]
    (problem,) = result.problems
    assert (problem.leaked_bytes, result.leaked) == (1000, 0)
    assert "left 1 block of 1000 B" in str(result)
    assert "1 left blocks" in result.summary


def test_exhaust_shows_other_exceptions_as_problems():
    def mistake():
        try:
            memrt.alloc(1000)
        except MemoryError:
            raise KeyError("cache") from None

    result = exhaust(mistake)
    assert {each.error for each in result.problems} == {"KeyError: 'cache'"}
    assert "unexpected KeyError" in repr(result.problems[0])
    assert exhaust(mistake, errors=(KeyError,)).problems == ()


def test_exhaust_calls_setup_without_failures():
    result = exhaust(np.copy, setup=lambda: np.empty(1000), kind="block")
    assert len(result.outcomes) == 1


def test_exhaust_counts_blocks_of_calls_without_failure_once():
    kept = []
    result = exhaust(lambda: kept.append(memrt.alloc(1000)), kind="meminfo")
    assert (result.leaked, result.problems) == (1, ())
    assert result.summary.endswith("1 block left also without a failure")


def test_exhaust_fails_all_later_requests_with_every():
    def retry():
        for _ in range(3):
            with contextlib.suppress(MemoryError):
                return memrt.alloc(1000)
        raise MemoryError

    assert all(each.error is None for each in exhaust(retry).outcomes)
    stays = exhaust(retry, every=1)
    assert {each.error for each in stays.outcomes} == {"MemoryError"}


def test_exhaust_of_a_policy_allocates_from_the_policy():
    policy = memrt.Policy(name="exhausted")
    result = exhaust(lambda: np.empty(1000), policy=policy)
    assert [each.kind for each in result.outcomes] == ["block"]
    assert policy.stats().failed == 1
    assert exhaust(lambda: memrt.empty(9, policy=memrt.Policy()), policy=policy).outcomes == ()
    with policy:
        assert exhaust(lambda: memrt.is_managed(np.empty(9)), kind="device").outcomes == ()


def test_exhaust_stops_at_too_many_failure_points():
    with pytest.raises(RuntimeError, match="at most 1 failure points, got more"):
        exhaust(lambda: [memrt.alloc(100), memrt.alloc(100)], most=1)
    with pytest.raises(ValueError, match="most must be 1 or more"):
        exhaust(list, most=0)


def test_exhaust_raises_errors_of_calls_without_failure():
    with pytest.raises(ZeroDivisionError):
        exhaust(lambda: 1 / 0)
    with pytest.raises(KeyboardInterrupt):
        exhaust(interrupt)
    memrt.alloc(10)  # the plan has ended


def interrupt():
    raise KeyboardInterrupt
