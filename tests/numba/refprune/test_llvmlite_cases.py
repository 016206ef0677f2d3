"""memrt's refcount pruner on the test cases of llvmlite's pass."""

from random import Random

import llvmlite.binding as llvm
import pytest
from flow_text import kept_idents, stock_plan, stock_prune, text_of, with_types
from llvmlite.tests import refprune_proto, test_refprune
from memrt.numba.refprune import prune
from memrt.numba.refprune.engine import plan
from memrt.numba.refprune.flow import Kind
from refprune_oracle import ViolationError, check, random_flow
from unsound_cases import CASES, outcome

FUNCTIONS = 1000  # the pass of llvmlite breaks one in 500

TEXTS = {
    f"{group.__name__}.{name}": f"{group.prologue}\n{text}"
    for group in (test_refprune.TestPerBB, test_refprune.TestDiamond, test_refprune.TestFanout,
                  test_refprune.TestFanoutRaise)
    for name, text in vars(group).items()
    if isinstance(text, str) and "define" in text
}  # fmt: skip
GRAPHS = sorted(name for name in vars(refprune_proto) if name.startswith("case"))


def removed_by_stock(text):
    before = llvm.dump_refprune_stats()
    stock_prune(text)
    return sum(llvm.dump_refprune_stats() - before)


def test_llvmlite_ships_its_cases():
    assert len(TEXTS) >= 18
    assert len(GRAPHS) >= 13


@pytest.mark.parametrize("name", TEXTS)
def test_case_is_pruned_as_far_as_by_llvmlite(name):
    assert prune(TEXTS[name])[1].removed >= removed_by_stock(TEXTS[name])


@pytest.mark.parametrize("name", GRAPHS)
def test_graph_is_pruned_as_far_as_by_llvmlite(name):
    nodes, edges, _ = getattr(refprune_proto, name)()
    text = str(test_refprune.TestRefPrunePass().generate_ir(nodes, edges))
    # No branch may lead to the entry block, contrary to some graphs of llvmlite 0.43 and 0.44.
    text = text.replace("{\nA:", '{\nentry:\n  br label %"A"\nA:')
    assert prune(text)[1].removed >= removed_by_stock(text)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name.replace(" ", "_"))
def test_unsound_case_of_llvmlite_stays_correct(case):
    right = outcome(case.text, case.choices)
    assert right[0] == 0
    assert outcome(stock_prune(case.text), case.choices) == (case.faults, case.count) != right
    pruned, stats = prune(case.text, explain=True)
    assert outcome(pruned, case.choices) == right
    if case.reason:
        assert any(case.reason in kept.reason for kept in stats.kept)
    else:
        assert stats.removed > 0


def test_llvmlite_moves_release_behind_call_without_return():
    text = with_types("""
declare void @NRT_incref(ptr)
declare void @NRT_decref(ptr)
declare void @stop() noreturn
define void @main(ptr %p, ptr %q) {
  call void @NRT_incref(ptr %p)
  call void @NRT_decref(ptr %q)
  call void @stop()
  unreachable
}""")
    last = [line.strip() for line in stock_prune(text).split("unreachable")[0].splitlines()][-2]
    pointer = with_types("ptr %q")
    assert last == f"call void @NRT_decref({pointer})"
    assert f"decref({pointer})\n  call void @stop" in prune(text)[0]


@pytest.mark.parametrize("seed", range(100))
def test_text_is_pruned_as_the_engine_decides(seed):
    flow = text_flow(seed)
    made = plan(flow)
    pruned, stats = prune(text_of(flow), passes=("pairs", "sink", "raise"))
    refops = {event.ident for block in flow.blocks for event in block.events
              if event.kind in (Kind.ACQUIRE, Kind.RELEASE)}  # fmt: skip
    assert kept_idents(pruned) == refops - made.removed
    assert stats.increfs + stats.decrefs == len(made.removed)


def text_flow(seed):
    """Return a random function that LLVM IR can express: no fence and no new value."""
    flow = random_flow(Random(seed))
    flow.stores = False
    for block in flow.blocks:
        block.closing = ()
        block.pinned = not block.successors and not block.returns
        block.events = [event for event in block.events
                        if event.kind not in (Kind.FENCE, Kind.DEFINE)]  # fmt: skip
    return flow


def test_oracle_finds_faults_of_llvmlite():
    found = 0
    for seed in range(FUNCTIONS):
        flow = text_flow(seed)
        try:
            check(flow, stock_plan(flow))
        except ViolationError:
            found += 1
    assert found > 0
