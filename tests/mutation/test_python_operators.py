"""Test the Python mutation operators: faults change behaviour, and mutants compile."""

import operators
import pytest
import python_operators

SOURCE = '''"""Text 1 < 2."""
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from x import y

LIMIT: int = 3


def least(a: int = 1, *, b: bool = True) -> int:
    """Text with 5."""
    if a < LIMIT and not b:
        note("é", a, size=b)
    a += 1
    if a == 7:
        raise ValueError(f"{a + 1} is more than 3")
    return sum(x * 2 for x in range(a) if x in (4, a))
'''


def changed() -> list[str]:
    """Return the changed lines of each mutant."""
    before, found = SOURCE.splitlines(), []
    for mutant in python_operators.faults(SOURCE):
        after = operators.apply(SOURCE, mutant).splitlines()
        lines = [new for old, new in zip(before, after, strict=True) if old != new]
        found.append("\n".join(line.strip() for line in lines))
    return found


@pytest.mark.parametrize(
    "line",
    [
        "LIMIT: int = 4",
        "def least(a: int = 2, *, b: bool = True) -> int:",
        "def least(a: int = 1, *, b: bool = False) -> int:",
        "if a <= LIMIT and not b:",
        "if a < LIMIT or not b:",
        "if a < LIMIT and b:",
        "if not (a < LIMIT and not b):",
        'note("é", a)',
        "pass",
        "if a != 7:",
        "return None",
        "return sum(x // 2 for x in range(a) if x in (4, a))",
        "return sum(x * 3 for x in range(a) if x in (4, a))",
        "return sum(x * 2 for x in range(a) if x not in (4, a))",
        "return sum(x * 2 for x in range(a) if not (x in (4, a)))",
    ],
)
def test_each_kind_of_python_mutant_is_created(line):
    assert line in changed()


def test_texts_types_and_errors_are_not_mutated():
    for line in changed():
        assert "1 <= 2" not in line
        assert "Text with" not in line
        assert "raise" not in line
        assert "import" not in line


def test_each_mutant_changes_a_single_line():
    assert all(len(line.splitlines()) == 1 for line in changed())
