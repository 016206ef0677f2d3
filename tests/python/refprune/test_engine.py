"""The refcount pruning engine against an oracle that explores all paths."""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from memrt.numba.refprune.engine import Plan, plan
from memrt.numba.refprune.flow import Block, Event, Flow, Kind
from refprune_oracle import ViolationError, check, random_flow

KINDS = {"+": Kind.ACQUIRE, "-": Kind.RELEASE, "f": Kind.FENCE, "a": Kind.ACCESS,
         "=": Kind.DEFINE, "!": Kind.RAISE}  # fmt: skip


def flow(*blocks, stores=False):
    """Return a function from pairs (events, successors). `+p` acquires p, `.` is a dead end."""
    idents = iter(range(100))
    made = []
    for index, (words, successors) in enumerate(blocks):
        events = [Event(KINDS[word[0]], word[1:] or None, next(idents)) for word in words.split()]
        returns = successors == ""
        targets = () if successors in ("", ".") else tuple(map(int, successors.split()))
        made.append(Block(f"b{index}", events, (), targets, returns))
    return Flow(made, stores)


def removed(*blocks, **options):
    stores = options.pop("stores", False)
    function = flow(*blocks, stores=stores)
    made = plan(function, **options)
    check(function, made)
    return sorted(made.removed)


@settings(deadline=None, max_examples=300)
@given(st.integers(0, 2**64), st.booleans(), st.booleans())
def test_random_functions_keep_lifetimes_and_balance(seed, sink, raises):
    function = random_flow(Random(seed))
    check(function, plan(function, sink=sink, raises=raises))


@settings(deadline=None, max_examples=100)
@given(st.integers(0, 2**64))
def test_plan_does_not_change_its_input(seed):
    function, same = random_flow(Random(seed)), random_flow(Random(seed))
    plan(function)
    assert function == same


def test_pair_in_one_block_is_removed():
    assert removed(("+p a -p", "")) == [0, 2]


def test_release_before_acquire_is_removed_with_it():
    assert removed(("-p +p", "")) == [0, 1]
    assert removed(("-p +p", ""), sink=False) == []


def test_long_ladder_is_removed_without_limit_on_depth():
    rungs = 60  # llvmlite stops at 15 blocks
    blocks = [("+p", "1 2")]
    for rung in range(rungs):
        last = 3 * rung + 3
        blocks += [("", str(last)), ("", str(last)), ("", f"{last + 1} {last + 2}")]
    blocks[-1] = ("-p", "")
    assert len(removed(*blocks)) == 2


def test_acquires_of_two_branches_share_one_release():
    assert removed(("", "1 2"), ("+p", "3"), ("+p", "3"), ("-p", "")) == [0, 1, 2]


def test_nested_acquires_are_removed_in_layers():
    assert removed(("+p +p +p", "1"), ("-p", "2"), ("-p -p", "")) == [0, 1, 2, 3, 4, 5]


def test_removal_of_one_reference_helps_another():
    assert removed(("+q +p", "1"), ("-p", "2"), ("a -q", ""), sink=False) == [0, 1, 2, 4]


def test_release_in_a_loop_keeps_the_acquire():
    assert removed(("+p", "1"), ("-p", "1 2"), ("", "")) == []


def test_loop_around_a_pair_is_removed():
    assert removed(("", "1"), ("+p", "2"), ("-p", "1 3"), ("", "")) == [0, 1]


def test_value_of_the_next_iteration_does_not_pair():
    assert removed(("", "1"), ("=p -p", "2"), ("+p", "1 3"), ("", "")) == []


def test_new_value_between_acquire_and_release_keeps_both():
    assert removed(("+p", "1"), ("=p", "2"), ("-p", "")) == []


def test_path_without_release_keeps_the_acquire():
    assert removed(("+p", "1 2"), ("-p", ""), ("", "")) == []


def test_path_without_acquire_keeps_the_release():
    assert removed(("", "1 2"), ("+p", "2"), ("-p", "")) == []


def test_other_release_before_an_access_keeps_the_acquire():
    assert removed(("+p", "1"), ("-q", "2"), ("a", "3"), ("-p", "")) == []


def test_other_release_in_the_last_block_moves_behind_the_access():
    function = flow(("+p", "1"), ("-q a -p", ""))
    made = plan(function)
    assert (sorted(made.removed), made.sunk) == ([0, 3], {0, 1})
    assert plan(function, sink=False).removed == set()


def test_acquire_after_another_release_does_not_need_its_move():
    function = flow(("-q +p", "1"), ("-p", ""))
    made = plan(function)
    assert (sorted(made.removed), made.sunk) == ([1, 2], set())


def test_pinned_block_keeps_its_order():
    function = flow(("+p", "1"), ("-q a -p", ""))
    function.blocks[1].pinned = True
    assert plan(function).removed == set()


def test_fence_keeps_the_acquire():
    assert removed(("+p f -p", "")) == []


def test_fence_of_the_terminator_keeps_the_acquire():
    function = flow(("+p", "1"), ("-p", ""))
    function.blocks[0].closing = (Event(Kind.FENCE, None, 99),)
    assert plan(function).removed == set()


def test_raise_closes_the_state_without_a_release():
    assert removed(("+p", "1 2"), ("-p", ""), ("!", "")) == [0, 1]
    assert removed(("+p", "1 2"), ("-p", ""), ("!", ""), raises=False) == []


def test_raise_does_not_count_if_the_function_stores_references():
    assert removed(("+p", "1 2"), ("-p", ""), ("!", ""), stores=True) == []


def test_release_after_a_raise_pairs_with_the_acquire():
    assert removed(("+p", "1 2"), ("-p", ""), ("!", "3"), ("-p", "")) == [0, 1, 3]


def test_other_release_after_a_raise_keeps_the_acquire():
    assert removed(("+p", "1 2"), ("-p", ""), ("!", "3"), ("-q", "")) == []
    assert removed(("+p", "1 2"), ("-p", ""), ("! -q", "")) == []


def test_acquire_before_raises_only_stays():
    assert removed(("+p", "1 2"), ("!", ""), ("!", "")) == []
    assert removed(("+p", "1 2 3"), ("-p", "4"), ("!", ""), ("+p !", ""), ("", "")) == [0, 1]


def test_acquire_after_a_release_stays_before_raises_only():
    assert removed(("+p", "1"), ("-p a +p", "2"), ("!", ""), sink=False) == [0, 1]


def test_endless_loop_counts_as_released():
    assert removed(("+p", "1 2"), ("", "1"), ("-p", "")) == [0, 1]


def test_end_of_the_program_counts_as_released():
    assert removed(("+p", "1 2"), ("", "."), ("-p", "")) == [0, 1]
    assert removed(("+p", "1 2"), ("", "."), ("-p", ""), stores=True) == []


def test_kept_acquires_have_causes():
    def rules(*blocks):
        return [cause.rule for _, cause in plan(flow(*blocks)).kept()]

    assert rules(("+p", "1 2"), ("-p", ""), ("", "")) == ["return"]
    assert rules(("", "1 2"), ("+p", "2"), ("-p", "")) == ["entry"]
    assert rules(("+p f -p", "")) == ["event"]
    assert rules(("-p", "1"), ("+p", "2 3"), ("!", ""), ("!", "")) == ["no release"]


def test_cause_names_block_and_event():
    function = flow(("+p", "1"), ("a f", "2"), ("-p", ""))
    ((ident, cause),) = plan(function).kept()
    assert (ident, cause.rule, cause.block) == (0, "event", 1)
    assert cause.event is not None
    assert cause.event.kind is Kind.FENCE


@pytest.mark.parametrize("wrong", [{0}, {3}, {0, 5}, {2}])
def test_oracle_finds_wrong_plans(wrong):
    function = flow(("+p a", "1"), ("-q -p a -p", ""))
    with pytest.raises(ViolationError):
        check(function, Plan(wrong))
