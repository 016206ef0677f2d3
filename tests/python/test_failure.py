"""Plans by which allocations fail. What they find: tests/failures."""

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
