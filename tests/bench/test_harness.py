"""Test the benchmark: slow subjects show as slow, goals can fail, the page keeps its parts."""

from __future__ import annotations

import subprocess
from dataclasses import replace

import check_budgets
import memrt
import numpy as np
import pytest
import report
from counts import budgets, pairs
from goals import GOALS, MET, NOT_MEASURED, NOT_MET, Goal, judge
from parts import (
    alloc,
    exchange,
    instructions,
    levels,
    limits,
    memory,
    million,
    numba_kernels,
    numpy_ops,
    observe,
    patterns,
    programs,
    see,
    threads,
    traces,
)
from places import FIGURES, HERE, PAGE, WORKERS, compiled
from result import Case, Group, Result
from rounds import in_turn, run_worker, servers
from subjects import DEFAULT, LIMIT, MEMRT, Subject, environments, own_allocators

GOAL = Goal("P1", "work", "alloc", alloc.ONE, 1.1, under=("peer",))
SPEEDUP = replace(GOAL, text="speed-up", bound=4.0, faster=True)


@pytest.fixture
def doubles(tmp_path) -> dict[str, Subject]:
    """Return a fast and a slow allocator with a simulated clock. The slow allocator takes 10x."""
    library = str(compiled(HERE / "doubles.c", folder=tmp_path))
    return {
        speed: Subject(speed, "double", {"library": library, "alloc": f"alloc_{speed}"})
        for speed in ("fast", "slow")
    }


@pytest.fixture
def table_subject() -> Subject:
    """Return the installed memrt, with table.c for calls specific to memrt."""
    table = str(compiled(WORKERS / "native" / "table.c", f"-I{memrt.get_include()}"))
    return Subject(MEMRT, "memrt", {"library": memrt.get_library(), "table": table})


def result(part: str, title: str, cases: dict[str, dict[str, list[float]]]) -> Result:
    group = Group(title, "about", "ns", "peer", [Case(name, own) for name, own in cases.items()])
    return Result(part, {"date": "today"}, 4, [group])


def measured(subjects: dict[str, Subject]) -> Result:
    """Measure each subject with the loop of goal P1, under the given name."""
    group = Group(alloc.ONE, "about", "ns", "peer")
    for name, subject in subjects.items():
        for _ in range(3):
            took = alloc.nanoseconds(alloc.one_live(64), subject)
            group.case("64 B, one live").add(name, took)
    return Result("alloc", {}, 3, [group])


def loop_jobs() -> dict[str, dict]:
    return {
        "one_live": alloc.one_live(4096),
        "many_live": alloc.many_live(alloc.mixed(10)),
        "references": {"loop": "references", "size": 64},
        "in_threads": {"loop": "in_threads", "size": 64, "threads": 2},
        "handed_over": {"loop": "handed_over", "size": 64},
        "many_in_threads": {
            "loop": "many_in_threads",
            "size": 64,
            "threads": 2,
            "loops": str(compiled(WORKERS / "native" / "patterns.c")),
        },
        "short_threads": {"loop": "short_threads", "size": 64},
    }


def test_slow_allocator_shows_as_slow_and_misses_the_goal(doubles):
    verdict = judge(GOAL, {"alloc": measured({"peer": doubles["fast"], MEMRT: doubles["slow"]})})
    assert verdict.state == NOT_MET
    assert verdict.spread.middle == pytest.approx(10)


def test_equal_allocators_show_as_equal_and_meet_the_goal(doubles):
    verdict = judge(GOAL, {"alloc": measured({"peer": doubles["slow"], MEMRT: doubles["slow"]})})
    assert verdict.state == MET
    assert verdict.spread.middle == pytest.approx(1)


@pytest.mark.parametrize("loop", ["one_live", "many_live"])
def test_loops_call_the_allocator_once_per_block(doubles, loop):
    assert alloc.nanoseconds(loop_jobs()[loop], doubles["fast"]) == pytest.approx(10)


@pytest.mark.parametrize("loop", sorted(loop_jobs().keys() - {"references"}))
def test_every_loop_runs_on_blocks_of_memrt(loop):
    subject = own_allocators()[1]
    job = loop_jobs()[loop] | {"count": 128}
    source = "patterns.c" if loop == "many_in_threads" else "loops.c"
    assert alloc.nanoseconds(job | {"loops": subject.loops(source)}, subject) > 0


@pytest.mark.parametrize("loop", loop_jobs())
def test_every_loop_runs_on_memrt(table_subject, loop):
    assert alloc.nanoseconds(loop_jobs()[loop] | {"count": 100}, table_subject) > 0


def test_stopped_clock_is_an_error(tmp_path):
    text = (HERE / "doubles.c").read_text(encoding="utf-8").replace("ticks +=", "(void)")
    source = tmp_path / "still.c"
    source.write_text(text, encoding="utf-8")
    library = str(compiled(source, folder=tmp_path))
    still = Subject("still", "double", {"library": library, "alloc": "alloc_fast"})
    with pytest.raises(Exception, match="returned non-zero exit status"):
        alloc.nanoseconds(alloc.one_live(64), still)


def test_ratios_are_per_round_to_the_fastest_peer():
    case = Case("a", {"x": [2.0, 30.0], "p": [1.0, 20.0], "q": [4.0, 10.0]})
    assert case.ratios("x", "p", "q").tolist() == [2.0, 3.0]


def test_goal_shows_the_worst_case_and_counts_failed_cases():
    cases = {f"{n}": {MEMRT: [float(n)] * 4, "peer": [1.0] * 4} for n in (1, 2, 3)}
    verdict = judge(GOAL, {"alloc": result("alloc", alloc.ONE, cases)})
    assert (verdict.state, verdict.case, verdict.failed, verdict.cases) == (NOT_MET, "3", 2, 3)


def test_speedup_below_its_bound_is_not_met():
    cases = {"a": {MEMRT: [1.0] * 4, "peer": [3.9] * 4}}
    assert judge(SPEEDUP, {"alloc": result("alloc", alloc.ONE, cases)}).state == NOT_MET
    cases["a"]["peer"] = [4.1] * 4
    assert judge(SPEEDUP, {"alloc": result("alloc", alloc.ONE, cases)}).state == MET


def test_geometric_mean_covers_all_cases():
    cases = {"a": {MEMRT: [4.0] * 4, "peer": [1.0] * 4}, "b": {MEMRT: [1.0] * 4, "peer": [4.0] * 4}}
    verdict = judge(replace(GOAL, mean=True), {"alloc": result("alloc", alloc.ONE, cases)})
    assert (verdict.state, verdict.spread.middle) == (MET, pytest.approx(1))


def test_case_slow_in_some_rounds_does_not_fail_the_goal():
    noisy, slow = [0.9, 0.95, 1.2, 1.3], [1.15, 1.2, 1.2, 1.3]
    for own, state in ((noisy, MET), (slow, NOT_MET)):
        cases = {f"{n}": {MEMRT: own, "peer": [1.0] * 4} for n in range(6)}
        assert judge(GOAL, {"alloc": result("alloc", alloc.ONE, cases)}).state == state


def test_mean_over_groups_uses_the_rounds_of_all_cases():
    found = result("alloc", alloc.ONE, {"a": {MEMRT: [4.0, 4.0], "peer": [1.0, 1.0]}})
    found.groups += result("alloc", alloc.MANY, {"b": {MEMRT: [1.0], "peer": [4.0]}}).groups
    goal = replace(GOAL, mean=True, also=(alloc.MANY,))
    verdict = judge(goal, {"alloc": found})
    assert (verdict.cases, verdict.spread.middle) == (2, pytest.approx(1))


def test_goal_without_figures_is_not_measured():
    assert judge(GOAL, {}).state == NOT_MEASURED
    lone = result("alloc", alloc.ONE, {"a": {MEMRT: [1.0]}})
    assert judge(GOAL, {"alloc": lone}).state == NOT_MEASURED


def test_every_goal_names_a_measured_group():
    titles = {
        "alloc": set(alloc.groups()) | {g.title for g in instructions.groups()},
        "threads": set(threads.groups()),
        "patterns": {group.title for group in patterns.groups()},
        "numpy": {t.title for t in numpy_ops.TOPICS} | {*numpy_ops.IN_INSTRUCTIONS.values()},
        "numba": {numba_kernels.GROUP, numba_kernels.WITHIN, numba_kernels.INSTRUCTIONS},
        "memory": set(memory.groups()),
        "limits": set(limits.groups()),
        "observe": {observe.INSTRUCTIONS, *(group.title for group in observe.groups())},
        "see": {group.title for group in see.groups()},
        "exchange": {group.title for group in exchange.groups().values()},
        "programs": {group.title for group in programs.groups().values()},
    }
    assert [goal for goal in GOALS if goal.group not in titles[goal.part]] == []


def test_every_goal_of_the_loops_names_existing_cases():
    cases = {title: list(jobs) for title, jobs in alloc.jobs().items()}
    cases |= {
        title: [row.name for row in budgets.BUDGETS if row.pair]
        for title in (instructions.TOTAL, instructions.ADDED)
    }
    cases[alloc.IN_TWO_THREADS] = cases[alloc.LARGE_BLOCKS]
    cases |= {threads.OWN: list(threads.SIZES), threads.POLICIES: list(threads.DEAD)}
    about = [goal for goal in GOALS if goal.group in cases]
    missing = [
        (goal.text, part)
        for goal in about
        for part in goal.cases
        if not any(part in name for title in (goal.group, *goal.also) for name in cases[title])
    ]
    assert about
    assert missing == []


def test_every_round_has_every_subject():
    subjects = [Subject(name, "malloc") for name in "abc"]
    order = [subject.name for subject in in_turn(subjects, 20)]
    rounds = ["".join(order[i : i + 3]) for i in range(0, 60, 3)]
    assert {"".join(sorted(names)) for names in rounds} == {"abc"}
    assert len(set(rounds)) > 1


def test_result_is_equal_after_write_and_read(tmp_path):
    written = result("alloc", alloc.ONE, {"a": {MEMRT: [1.0, 2.0], "peer": [1.5, 2.5]}})
    written.write(tmp_path / "alloc.json")
    assert Result.read(tmp_path / "alloc.json") == written


def test_figures_keep_four_digits_on_one_line(tmp_path):
    result("alloc", alloc.ONE, {"a": {MEMRT: [1.23456, 2e-9, 123456.0]}}).write(tmp_path / "a.json")
    assert '"memrt": [1.235, 2e-09, 123500.0]\n' in (tmp_path / "a.json").read_text()


def test_page_shows_the_committed_results():
    shown = report.page(report.known(FIGURES), folder=FIGURES.name)
    assert PAGE.read_text(encoding="utf-8") == shown


def test_page_has_summary_goals_and_folded_tables():
    goals = (GOAL, replace(GOAL, part="threads", text="other"), replace(GOAL, text="third"))
    found = {
        "alloc": result("alloc", alloc.ONE, {"a": {MEMRT: [7.0] * 4, "peer": [1.0] * 4}}),
        "threads": result("threads", alloc.ONE, {"a": {MEMRT: [1.0] * 4, "peer": [1.0] * 4}}),
    }
    page = report.page(found, goals)
    assert "| P1 | work | ≤ 1.10 | 7.00 (7.00 to 7.00) | not met |" in page
    assert "| P1 | other | ≤ 1.10 | 1.00 (1.00 to 1.00) | met |" in page
    assert "\n1 of 3 goals are met.\n" in page
    assert f"![{alloc.ONE}](benchmarks/alloc-one-block-at-a-time.svg)" in page
    assert page.count("<summary>Threads</summary>") == page.count("- date: today") - 1 == 1


def test_page_states_a_reason_once_and_only_of_missed_goals():
    reasons = {"work": "the header", "second": "the header", "third": "the lock"}
    goals = [replace(GOAL, text=text, limit=limit) for text, limit in reasons.items()]
    slow = {"a": {MEMRT: [7.0] * 4, "peer": [1.0] * 4}}
    page = report.page({"alloc": result("alloc", alloc.ONE, slow)}, goals[:2])
    assert "- P1, work; P1, second. Reason: the header\n" in page
    assert "the lock" not in page
    fast = {"a": {MEMRT: [1.0] * 4, "peer": [1.0] * 4}}
    page = report.page({"alloc": result("alloc", alloc.ONE, fast)}, goals)
    assert "Known reasons" not in page


def test_summary_has_the_ratios_of_programs_and_of_small_blocks():
    took = {"a": {MEMRT: [1.0], DEFAULT: [2.0]}, "b": {MEMRT: [8.0], DEFAULT: [4.0]}}
    kept = {"a": {MEMRT: [9.0], DEFAULT: [4.0]}}
    block = {"64 B, one live": {MEMRT: [3.0]} | {peer: [2.0] for peer in alloc.PEERS}}
    results = {
        "programs": result("programs", programs.TIME, took),
        "alloc": result("alloc", alloc.ONE, block),
    }
    results["programs"].groups += result("programs", programs.PEAK, kept).groups
    for group in (group for each in results.values() for group in each.groups):
        group.reference = None
    page = report.page(results, ())
    assert "2 whole programs take 1.00 of the time and 2.25 of the peak memory" in page
    assert "A block of 64 B takes 1.50 times as long" in page


def test_memory_worker_reports_growth_and_cached_bytes(table_subject):
    job = loop_jobs()["handed_over"] | {
        "loops": str(compiled(WORKERS / "native" / "loops.c")),
        "count": 1000,
    }
    assert set(memory.look("growth", table_subject, **job)) == {"growth", "cached"}


@pytest.mark.parametrize("name", patterns.PATTERNS)
def test_patterns_report_time_and_peak(name):
    pattern = replace(patterns.PATTERNS[name], count=8000)
    for subject in own_allocators():
        seen = patterns.look(pattern, subject)
        assert seen["ns"] > 0
        assert seen["peak"] >= 0


@pytest.mark.parametrize("loop", ["larson", "consumers", "survivors", "exits", "false_sharing"])
def test_patterns_free_every_block(tmp_path, loop):
    library = compiled(HERE / "doubles.c", folder=tmp_path)
    double = Subject("double", "double", {"library": str(library), "alloc": "alloc_counted"})
    worker = tmp_path / "worker.py"
    worker.write_text(
        "import ctypes, json, sys\n"
        f"sys.path.insert(0, {str(WORKERS)!r})\n"
        "import blocks\n"
        "job = json.loads(sys.argv[1])\n"
        "blocks.spent(blocks.prepared(job), job['count'])\n"
        "library = ctypes.CDLL(job['subject']['library'])\n"
        "print(json.dumps([library.allocations(), library.frees()]))\n"
    )
    pattern = next(each for each in patterns.PATTERNS.values() if each.loop == loop)
    loops = str(compiled(WORKERS / "native" / "patterns.c"))
    allocated, freed = run_worker(
        worker, replace(pattern, count=16_000).job() | {"loops": loops}, double
    )
    assert 16_000 <= allocated == freed <= 16_002


def test_best_peer_is_the_least_of_each_round():
    case = Case("a", {name: [2.0, 9.0] for name in patterns.PEERS} | {MEMRT: [1.0, 1.0]})
    case.figures["tcmalloc"] = [3.0, 4.0]
    patterns.add_best(case)
    assert case.figures[patterns.BEST] == [2.0, 4.0]


def test_limits_measure_cached_and_released_memory():
    job = {"count": 2, "bytes": 4 << 20, "waits": [0]}
    kept, given = (
        limits.look("kept", limits.set_to("", setting), **job)
        for setting in ("DECAY=never", "CACHE_LIMIT=0")
    )
    assert kept["right after"] > 6 << 10
    assert given["right after"] < 2 << 10
    assert kept["after release_unused()"] < 2 << 10
    assert kept["ns"] > 0


@pytest.mark.parametrize(
    ("case", "level"),
    [
        *((case, levels.OFF) for case in observe.CASES),
        *((case, level) for case in observe.IN_C for level in observe.levels(case)),
        (observe.AT_THE_END, levels.SCOPE),
        (observe.AT_THE_END, levels.PYTHON),
    ],
)
def test_blocks_are_measured_at_each_observation_level(case, level):
    assert observe.nanoseconds(case, level, target=1000) > 0


@pytest.mark.parametrize(
    ("case", "level"),
    [*((case, see.BARE) for case in see.TASKS), *((see.AT_THE_END, level) for level in see.LEVELS)],
)
def test_arrays_are_measured_while_a_trace_is_recorded(case, level):
    assert see.nanoseconds(case, level, target=1000) > 0


def test_every_trace_query_is_timed():
    found = see.answers(2000)
    assert set(found) == set(see.QUESTIONS.values())
    assert all(took > 0 for took in found.values())


def test_opening_of_a_page_is_measured():
    assert see.opening(200) > 0


@pytest.mark.parametrize("look", see.LOOKS)
def test_program_is_measured_under_each_command(look):
    assert see.looked_at(look) > 0


def test_python_level_is_measured_only_in_python_cases():
    assert levels.PYTHON not in observe.levels(observe.IN_C[0])
    assert levels.PYTHON in observe.levels(observe.IN_PYTHON[0])


def test_levels_set_the_tracking_options_of_memrt(tmp_path):
    worker = tmp_path / "worker.py"
    worker.write_text(
        "import json, memrt\n"
        "from memrt import _memrt\n"
        "peak = {option.name: option.value for option in memrt.debug.options()}['MEMRT_PEAK']\n"
        "print(json.dumps([*_memrt.tracking_get(), peak]))\n"
    )
    assert {
        name: run_worker(worker, {}, level.subject(name, MEMRT))
        for name, level in levels.LEVELS.items()
        if name != levels.SCOPE
    } == {
        levels.OFF: [False, 16, 0, 0, "bounded"],
        levels.CLOSE: [False, 16, 0, 0, "close"],
        levels.PEAK: [False, 16, 0, 0, "exact"],
        levels.SAMPLED: [True, 16, 0, 512 << 10, "bounded"],
        levels.LISTED: [True, 0, 0, 0, "bounded"],
        levels.PYTHON: [True, 16, 0, 0, "bounded"],
        levels.NATIVE: [True, 0, 8, 0, "bounded"],
    }


@pytest.mark.parametrize("task", ["make", "live", "retention of all", "leaks"])
def test_queries_of_many_arrays_report_time_and_memory(task):
    subject = levels.LEVELS[levels.PYTHON].subject(levels.PYTHON, MEMRT)
    seen = million.ask(task, million.HALVES, subject, 2 * million.LINES)
    seen.pop("bytes", None)  # noise of the process dominates with so few arrays
    assert all(figure > 0 for figure in seen.values())


def test_exit_report_of_many_arrays_is_measured():
    assert million.report_at_exit(million.WHOLE, 2 * million.LINES) > 0


def test_exchange_is_measured_beside_numpy():
    found = exchange.times(exchange.NUMPY, target=1000, turns=2)
    assert len(found) == 7
    for ways in found.values():
        assert set(ways) == {exchange.NUMPY, MEMRT}
        assert min(ways.values()) > 0


def test_exchange_loops_leak_nothing(tmp_path):
    worker = tmp_path / "worker.py"
    worker.write_text(
        "import json, sys, memrt\n"
        f"sys.path.insert(0, {str(WORKERS)!r})\n"
        "import exchange\n"
        "cases = exchange.with_numpy()\n"
        "before = memrt.stats()\n"
        "for ways in cases.values():\n"
        "    exchange.nanoseconds(ways, 1000, 2)\n"
        "now = memrt.stats()\n"
        "print(json.dumps([now.live - before.live, now.exported, now.adopted]))\n"
    )
    assert run_worker(worker, {}, Subject(MEMRT, MEMRT)) == [0, 0, 0]


def test_observation_cost_is_the_difference_per_round():
    took = Case("a", {levels.OFF: [1.0, 10.0], "watched": [2.0, 15.0]})
    assert observe.added(took).figures == {"watched": [1.0, 5.0]}


def test_trace_numbers_blocks_and_omits_earlier_blocks():
    events = [
        (100, 0, 8, traces.ALLOC),
        (900, 0, 0, traces.FREE),  # allocated before the trace
        (200, 100, 16, traces.REALLOC),
        (300, 901, 16, traces.REALLOC),  # old block allocated before the trace
        (200, 0, 0, traces.FREE),
        (100, 0, 4, traces.CALLOC),
    ]
    found, blocks = traces.numbered(np.array(events, traces.EVENT))
    assert found.tolist() == [
        (0, 0, 8, traces.ALLOC),
        (1, 0, 16, traces.REALLOC),
        (2, 0, 16, traces.ALLOC),
        (1, 0, 0, traces.FREE),
        (3, 0, 4, traces.CALLOC),
    ]
    assert blocks == 4


def test_recorded_trace_replays_on_memrt(tmp_path, table_subject):
    program = tmp_path / "program.py"
    program.write_text(
        "import ctypes, json, sys, numpy\n"
        "recorder = ctypes.CDLL(None)\n"
        "recorder.record_start(json.loads(sys.argv[1])['path'].encode())\n"
        "kept = [numpy.ones(n) for n in (1000, 1_000_000)]\n"
        "print(recorder.record_stop())\n"
    )
    recorder = Subject("recorder", DEFAULT, preload=str(compiled(WORKERS / "native" / "record.c")))
    raw = tmp_path / "trace.raw"
    assert run_worker(program, {"path": str(raw)}, recorder) >= 2
    events, blocks = traces.numbered(np.fromfile(raw, traces.EVENT))
    assert {8000, 8_000_000} <= set(events["size"].tolist())
    trace = tmp_path / "trace.npz"
    np.savez(trace, events=events, blocks=blocks)
    replay = str(compiled(WORKERS / "native" / "replay.c"))
    seen = memory.look("trace", table_subject, replay=replay, trace=str(trace))
    assert seen["peak"] > 7000


def test_arrays_worker_has_20_operations_in_each_environment():
    with servers(WORKERS / "arrays.py", environments()) as everybody:
        for server in everybody:
            cases = server.ask("prepare", "operations", 1024)
            assert len(cases) == 20
            assert server.ask("time", "copy", "", 1000, 100) > 0


def test_program_reports_time_peak_and_faults():
    for subject in environments():
        took = programs.run_program("heat equation", subject)
        assert min(took["ns"], took["peak"], took["faults"]) > 0


def test_bare_limit_needs_no_allocator():
    bare = Subject(LIMIT, "bare")
    assert alloc.nanoseconds({"loop": "locked_adds", "size": 64}, bare) > 0


def test_worker_environment_omits_memory_settings(monkeypatch):
    monkeypatch.setenv("MEMRT_CHECK", "1")
    monkeypatch.setenv("MALLOC_ARENA_MAX", "1")
    monkeypatch.setenv("LD_PRELOAD", "")
    environment = Subject("a", "malloc").environment()
    assert not {"MEMRT_CHECK", "MALLOC_ARENA_MAX", "LD_PRELOAD"} & set(environment)


@pytest.mark.parametrize(
    "pair", [*(row.pair for row in budgets.BUDGETS if row.pair), pairs.Pair("malloc", 64)], ids=str
)
def test_every_pair_runs_on_memrt(pair):
    subprocess.run(pairs.command(pair, memrt.get_library(), 200), check=True)


def test_pair_that_fails_in_a_forked_child_ends_with_an_error():
    pair = pairs.Pair("block", 1 << 62, "child")
    assert subprocess.run(pairs.command(pair, memrt.get_library(), 1)).returncode != 0


def test_counts_of_parent_and_child_are_added():
    assert pairs.collected("==7== Collected : 120\n==8== Collected : 30\n") == 150


def test_figure_outside_of_its_budget_is_a_complaint():
    row = budgets.Budget("J1", "a pair", 100, pairs.Pair("block", 64))
    complaints = {figure: budgets.complaint(row, figure, "gcc 12") for figure in (97, 98, 102, 103)}
    assert complaints == {
        97: "a pair: measured 97.0: lower the figure 100.0 in tests/bench/counts/budgets.py to the "
        "measured figure",
        98: None,
        102: None,
        103: "a pair: measured 103.0, above the budget of 102.0",
    }
    assert budgets.complaint(row, 112, "clang 14") is None
    assert budgets.complaint(row, 113, "clang 14") is not None
    assert "callgrind_annotate" in check_budgets.advice(row, memrt.get_library())


def test_instructions_of_close_peaks_are_a_complaint():
    figures = {"a": 66.0, "b": 70.0, "mean of NumPy": 1.0}
    assert check_budgets.close_complaints(figures, {"a": 66.9, "b": 60.0}) == []
    assert check_budgets.close_complaints(figures, {"a": 67.5, "b": 70.0}) == [
        "a: measured 67.5 with MEMRT_PEAK=close, but 66.0 without"
    ]


def test_pair_with_a_peak_runs_after_the_peak():
    pair = pairs.Pair("two policies", 64, peak=1 << 20)
    words = pairs.command(pair, memrt.get_library(), 200)
    assert words[-2:] == ["none", str(1 << 20)]
    subprocess.run(words, check=True)


def test_goal_of_a_difference_subtracts_the_other_row():
    row = budgets.Budget("J3", "a policy", 100, pairs.Pair("block", 64), "a block")
    assert budgets.goal_text(row) == "a block + 8"
    assert budgets.is_met(row, {"a policy": 100, "a block": 92})
    assert not budgets.is_met(row, {"a policy": 100, "a block": 91})


def test_each_budget_has_a_goal_and_a_row_to_subtract():
    rows = {row.name for row in budgets.BUDGETS}
    assert len(rows) == len(budgets.BUDGETS)
    assert {row.goal for row in budgets.BUDGETS} == set(budgets.GOALS)
    for row in budgets.BUDGETS:
        assert bool(row.over) == budgets.GOALS[row.goal].added
        assert not row.over or row.over in rows


def test_goal_of_a_budget_covers_only_its_rows():
    names = [row.name for row in budgets.BUDGETS if row.pair]
    for goal in GOALS:
        if goal.number in budgets.GOALS:
            found = {name for name in names for part in goal.cases if part in name}
            assert {row.goal for row in budgets.BUDGETS if row.name in found} == {goal.number}
