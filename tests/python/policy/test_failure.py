"""Plans for fault injection. tests/failures uses the plans to find faults."""

import threading

import memrt
import pytest
from memrt.testing import fail_allocations


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
    with fail_allocations(10) as outer:
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
        points("old site")
        assert points("old site") == points("new site") == 1  # the MemInfo
