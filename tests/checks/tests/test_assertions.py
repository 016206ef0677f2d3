"""Test the count of assertions, and that a core with too few assertions is found."""

from __future__ import annotations

from pathlib import Path

import assertions

ROOT = Path(__file__).resolve().parents[3]

CODE = """/// MEMRT__ASSERT(in a comment);
#define CHECKED(x) \\
    MEMRT__ASSERT(x)

static const char *text = "MEMRT__HOLDS(in a string)"; /* a comment
   of two lines */
_Static_assert(1, "counts as a line alone");
void f(int n)
{
    MEMRT__ASSERT(n > 0);
    MEMRT__ASSERT_HELD(LOCK);
    return MEMRT__HOLDS(n < 9) && MEMRT__HOLDS(n != 5);
}
"""


def seed(root: Path, lines: int, assertion_count: int) -> None:
    """Write a core of one file with the given numbers of lines and assertions."""
    path = root / "runtime/base/seeded.c"
    path.parent.mkdir(parents=True)
    rest = lines - assertion_count
    path.write_text("MEMRT__ASSERT(x);\n" * assertion_count + "x++;\n" * rest, encoding="utf-8")


def test_assertions_in_comments_strings_and_macros_do_not_count():
    assert assertions.count_text(CODE) == assertions.Count(lines=10, assertions=4)


def test_core_has_enough_assertions():
    assert assertions.violations(ROOT) == []


def test_core_with_too_few_assertions_is_found(tmp_path):
    seed(tmp_path, 1000, 19)
    assert assertions.violations(tmp_path) == [
        "the core must have 2.0 assertions per 100 lines of code, got 1.90: 19 in 1000 lines"
    ]


def test_core_with_two_assertions_per_100_lines_passes(tmp_path):
    seed(tmp_path, 1000, 20)
    assert assertions.violations(tmp_path) == []


def test_public_headers_are_no_part_of_the_core(tmp_path):
    header = tmp_path / "api/include/memrt/public.h"
    header.parent.mkdir(parents=True)
    header.write_text("int x;\n" * 1000, encoding="utf-8")
    seed(tmp_path, 100, 2)
    assert assertions.violations(tmp_path) == []
