"""Test the conformance kit: right allocators break no clause, each wrong allocator breaks one."""

import json

import pytest
from allocators import OWN, RIGHT, WRONG, broken, check_allocator, verdicts
from building import compile_c


@pytest.fixture(scope="session")
def doubles(tmp_path_factory):
    return compile_c(tmp_path_factory.mktemp("doubles"), "doubles.c", shared=True)


@pytest.fixture(scope="session")
def own(tmp_path_factory):
    return compile_c(tmp_path_factory.mktemp("own"), "own.c", shared=True)


@pytest.mark.parametrize("symbol", RIGHT)
def test_correct_allocator_breaks_no_clause(symbol, doubles):
    found = verdicts(doubles, symbol)
    assert broken(found) == {}
    assert found["alignment"] == ("pass", "")


@pytest.mark.parametrize("symbol", OWN)
def test_memrt_allocators_break_no_clause(symbol, own):
    assert broken(verdicts(own, symbol)) == {}


@pytest.mark.parametrize("symbol", WRONG)
def test_wrong_allocator_breaks_only_its_clause(symbol, doubles):
    assert broken(verdicts(doubles, symbol)) == dict([WRONG[symbol]])


def test_every_clause_has_a_wrong_allocator(doubles):
    assert {clause for clause, _ in WRONG.values()} == set(verdicts(doubles, "right"))


def test_missing_features_are_not_applicable(doubles):
    found = verdicts(doubles, "least")
    lacks = {clause for clause, (verdict, _) in found.items() if verdict == "not applicable"}
    assert {"zeroed", "usage", "release-unused", "destroy"} < lacks
    assert found["destroy"] == ("not applicable", "the table has no `destroy`")


def test_verdicts_are_printed_with_observations(doubles):
    result = check_allocator("--clause", "table", "--clause", "usage", f"{doubles}:wrong_usage")
    assert result.returncode == 1
    assert result.stdout.splitlines() == [
        "  table  pass  the table has a size, a version, `alloc` and `free`",
        "  usage  fail  `usage` left `cached` unset",
        "",
        "2 clauses tested, 1 broken",
    ]


def test_crash_is_reported_with_its_signal(doubles):
    result = check_allocator("--json", "--clause", "destroy", f"{doubles}:wrong_destroy")
    (row,) = json.loads(result.stdout)
    assert (row["verdict"], row["saw"]) == ("crashed", "ended by SIGABRT")
    assert result.returncode == 1


def test_exit_status_is_0_without_a_broken_clause(doubles):
    assert check_allocator("--clause", "table", str(doubles)).returncode == 0


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["{lib}.not"], "no such file"),
        (["{lib}:no_such_table"], "undefined symbol: no_such_table"),
        (["--clause", "speed", "{lib}"], "clause must be one of table, alignment, "),
        ([__file__], "cannot load: "),
    ],
)
def test_bad_arguments_give_exit_status_2(arguments, says, doubles):
    result = check_allocator(*(argument.format(lib=doubles) for argument in arguments))
    assert result.returncode == 2
    assert says in result.stderr
    assert result.stdout == ""
