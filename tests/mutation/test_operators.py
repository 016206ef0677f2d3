"""Test the C mutation operators, the draw of mutants, verdicts, and the end of hung programs."""

import mutate
import operators
import pytest

SOURCE = """#define LIMIT 3
/* if (1 < 2) */
static const char *text = "1 < 2";
struct pair { int one, two; };

static int least(int *a, int b)
{
    MEMRT__ASSERT(b > 0);
    if (*a < b && !text) {
        note(a, b);
    }
    for (int i = 0; i < 1; i++) {
        b -= 1;
    }
    return *a + b;
}
"""


def changed(source: str) -> list[str]:
    """Return the changed line of each mutant."""
    before = source.splitlines()
    found = []
    for mutant in operators.faults(source):
        after = operators.apply(source, mutant).splitlines()
        assert len(after) == len(before)
        (line,) = [new for old, new in zip(before, after, strict=True) if old != new]
        found.append(line.strip())
    return found


@pytest.mark.parametrize(
    "line",
    [
        "if (*a <= b && !text) {",
        "if (*a < b || !text) {",
        "if (*a < b && text) {",
        "if (!(*a < b && !text)) {",
        "(void)0;",
        "for (int i = 1; i < 1; i++) {",
        "for (int i = 0; i <= 1; i++) {",
        "for (int i = 0; i < 1; i--) {",
        "b += 1;",
        "b -= 2;",
        "return *a - b;",
    ],
)
def test_each_kind_of_c_mutant_is_created(line):
    assert line in changed(SOURCE)


def test_code_outside_function_bodies_is_not_mutated():
    head = SOURCE.index("static int least")
    assert all(fault.start > head for mutant in operators.faults(SOURCE) for fault in mutant)


def test_assertions_are_not_mutated():
    assert not any("MEMRT__ASSERT" in line for line in changed(SOURCE))


def test_draw_is_independent_of_other_mutants(tmp_path, monkeypatch):
    monkeypatch.setattr(mutate, "ROOT", tmp_path)
    (tmp_path / "a.c").write_text(SOURCE)
    mutants = mutate.all_mutants(["a.c"])
    half = [m for m in mutants if "b" in m.what or "removed" in m.what]
    drawn = [m.key for m in mutate.drawn(mutants, len(mutants), 1)]
    assert [m.key for m in mutate.drawn(half, 99, 1)] == [
        key for key in drawn if key in {m.key for m in half}
    ]
    assert drawn != [m.key for m in mutate.drawn(mutants, len(mutants), 2)]


def test_verdict_reports_survivors_without_a_reason():
    outcomes = {
        "a": "killed: t",
        "b": "alive",
        "c": "alive",
        "d": "killed: t",
        "e": "did not end: t",
    }
    verdict = mutate.Verdict(outcomes, {"b": "why", "d": "why"})
    faults = list(verdict.faults())
    assert any("without an explanation: c" in fault for fault in faults)
    assert any("survivor was found: d" in fault for fault in faults)
    assert any("mutants found must be" in fault for fault in faults)
    assert verdict.percent == 60


def test_hanging_program_is_killed_with_its_children(tmp_path):
    program, started = tmp_path / "forks", tmp_path / "session"
    program.write_text(
        f"#!/bin/bash\nset -m\necho $$ > {started}\nwhile :; do sleep 99 & sleep 0.01; done\n"
    )
    program.chmod(0o755)
    assert mutate.passes(program, 0.5) is None
    assert mutate.members(int(started.read_text())) == []
