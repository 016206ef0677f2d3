"""Test the mutation of the bindings: the choice of sources, lines and tests."""

import json
import os

import bindings_mutation as bindings
import functions
import mutate
import pytest

FILE = "bindings/src/types/scope.c"
SOURCE = """\
import a


def f(x,
      y=1):
    call(x,
         y)
    if (x
            and y):
        return [x,
                y]
    for i in x:
        pass
"""


@pytest.mark.parametrize(
    ("line", "lines"),
    [(1, [1]), (5, [4, 5]), (7, [6, 7]), (9, [8, 9]), (11, [10, 11]), (12, [12]), (13, [13])],
)
def test_statement_lines_are_of_the_innermost_statement(line, lines):
    assert list(bindings.statement_lines(SOURCE, line)) == lines


def test_sources_are_c_and_python_without_numba():
    found = bindings.sources()
    assert {"bindings/src/types/scope.c", "bindings/memrt/_stats/snapshot.py"} <= set(found)
    numba = [name for name in found if "numba" in name or "/nrt_" in name]
    assert {os.path.dirname(name) for name in numba} == {"bindings/memrt/numba/refprune"}
    assert not [name for name in numba if name.endswith(("hook.py", "__init__.py", "report.py"))]


def test_c_tests_come_from_the_line_or_the_line_before(monkeypatch, tmp_path):
    monkeypatch.setattr(bindings, "COVERAGE", tmp_path)
    lines = {"slow": [7, 8], "quick": [8], "scope": [8]}
    content = {
        "seconds": {"tests/test_slow.py": 9, "tests/test_quick.py": 1, "tests/test_scope.py": 99},
        "c": {f"tests/test_{name}.py": {FILE: lines[name]} for name in lines},
    }
    content["c"]["tests/failures/meet.py"] = {FILE: [7, 8]}  # not a test file of pytest
    (tmp_path / "results.json").write_text(json.dumps(content))
    reach = bindings.Reach()
    mutant = mutate.Mutant(FILE, "", "", 1, ())
    for line, tests in ((7, ["slow"]), (9, ["scope", "quick", "slow"]), (20, [])):
        monkeypatch.setattr(bindings, "line_of", lambda _, line=line: line)
        assert reach.find_tests_of(mutant) == [f"tests/test_{name}.py" for name in tests]


@pytest.mark.parametrize(
    ("line", "test"),
    [
        ("FAILED tests/python/test_a.py::test_b - assert 1", "tests/python/test_a.py::test_b"),
        ("ERROR tests/a.py::T::test_b[x y-1] - E", "tests/a.py::T::test_b[x y-1]"),
        ("FAILED tests/a.py::test_b[x y]", "tests/a.py::test_b[x y]"),
    ],
)
def test_failed_test_is_read_from_the_summary(line, test):
    assert bindings.failed_test(f"1 failed\n{line}\n") == test


def test_test_that_runs_at_a_crash_is_the_failed_test():
    log = "tests/a.py::test_a PASSED [ 50%]\ntests/a.py::test_b[x] Fatal Python error: Aborted\n"
    assert bindings.failed_test(log) == "tests/a.py::test_b[x]"
    assert bindings.failed_test("ImportError while loading conftest\n") is None


TEST = "tests/test_a.py::test_one"
REACH = type("Reach", (), {"seconds": lambda _, tests: 1.0})()


@pytest.mark.parametrize(
    ("failing", "outcome"),
    [
        ({("all", True), (TEST, True)}, f"killed: {TEST}"),
        ({("all", True), ("tests/test_a.py", True)}, f"killed: {TEST}"),  # by an earlier test
        ({("all", True), (TEST, True), (TEST, False)}, "alive"),
        ({("all", True), ("tests/test_a.py", True), ("tests/test_a.py", False)}, "alive"),
        ({("all", True)}, "alive"),
        (set(), "alive"),
    ],
)
def test_failure_counts_if_the_fault_is_its_reason(failing, outcome, monkeypatch):
    """`failing` has failing calls, each with or without the fault."""
    workshop = object.__new__(bindings.Workshop)
    workshop.budget, workshop.stable, workshop.unstable, faulty = 100, set(), set(), [True]

    def run(tests, limit, doubtful=()):
        name = tests[0] if len(tests) == 1 else "all"
        fails = (name, faulty[0]) in failing and TEST not in {*doubtful, *workshop.unstable}
        return ("killed", TEST, 1.0) if fails else ("passed", None, 1.0)

    def without():
        faulty[0] = False
        yield
        faulty[0] = True

    monkeypatch.setattr(workshop, "_pytest", run)
    assert workshop._ask([TEST, "tests/test_b.py::test_two"], REACH, without) == outcome


def test_given_tests_run_for_known_survivors_only(monkeypatch, tmp_path):
    killed, survivor, unknown = mutate.all_mutants([FILE])[:3]
    results = tmp_path / "outcomes.jsonl"
    mutate.keep(killed, "killed: x", results)
    mutate.keep(survivor, "alive", results)
    monkeypatch.setattr(bindings, "WORK", tmp_path)
    monkeypatch.setattr(bindings, "RESULTS", results)
    monkeypatch.setattr(bindings.Workshop, "prepare", lambda _: None)
    judge = lambda _, mutant, reach: f"killed: {reach.find_tests_of(mutant)}"  # noqa: E731
    monkeypatch.setattr(bindings.Workshop, "judge", judge)
    outcomes = bindings.run_mutants([killed, survivor, unknown], True, 1, [TEST])
    assert outcomes == {killed.key: "killed: x", survivor.key: f"killed: {[TEST]}"}


def test_removed_test_is_not_there():
    own = "tests/mutation/test_bindings_mutation.py::test_removed_test"
    assert bindings.is_there(f"{own}_is_not_there")
    assert not bindings.is_there(own)
    assert not bindings.is_there("tests/mutation/none.py::test")


def test_unmeasured_source_gets_tests_that_mention_the_module(monkeypatch, tmp_path):
    monkeypatch.setattr(bindings, "COVERAGE", tmp_path)
    monkeypatch.setattr(bindings, "TESTS_OF", tmp_path / "none")
    found = bindings.Reach().find_tests_of(
        mutate.Mutant("bindings/memrt/_telemetry/metrics.py", "", "", 1, ())
    )
    assert found[0] == "tests/python/telemetry/test_metrics.py"


def test_is_in_function_excludes_lines_of_modules_and_classes():
    source = "LIMIT = 1\ndef f(n=2):\n  return n\nclass C:\n  x = 3\n  def g(self):\n    pass\n"
    assert [line for line in range(1, 8) if bindings.is_in_function(source, line)] == [3, 7]


def test_outcomes_of_changed_functions_are_forgotten(monkeypatch, tmp_path):
    mutant = mutate.all_mutants([FILE])[0]
    rows = [
        {"key": mutant.key, "file": FILE, "code": mutate.code_of(mutant), "outcome": "killed: x"},
        {"key": "b", "file": FILE, "code": "an old hash", "outcome": "alive"},
        {"key": "c", "file": "bindings/no_such_file.c", "code": "hash", "outcome": "alive"},
    ]
    path = tmp_path / "outcomes.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    monkeypatch.setattr(bindings, "RESULTS", path)
    bindings.forget_changed_functions()
    assert [json.loads(line) for line in path.read_text().splitlines()] == rows[:1]
    assert mutate.known([mutant], path) == {mutant.key: "killed: x"}
    monkeypatch.setattr(mutate, "code_of", lambda _: "of another function")
    assert mutate.known([mutant], path) == {}


@pytest.mark.parametrize(
    ("suffix", "source", "at", "text"),
    [
        (".c", "int a;\n\nint f(void)\n{\n    return 1;\n}\n\nint g;\n", "1", "int a;"),
        (".c", "void f(void)\n{\n}\n\nint g(void)\n{\n    return 2;\n}\n", "2", "int g(void)"),
        (".py", "class C:\n    x = 1\n\n    @a\n    def f(self):\n        return 2\n", "2", "@a"),
        (".py", "def f():\n    def g():\n        return 3\n    return g\n", "3", "def f():"),
        (".py", "x = 4\n\ndef f():\n    pass\n", "4", "x = 4"),
    ],
)
def test_function_of_position(suffix, source, at, text):
    found = functions.text_around(source, suffix, source.index(at))
    assert found.startswith(text)
    assert (found == source) == (suffix == ".py" and at == "4")
    assert found in functions.texts(source, suffix)
