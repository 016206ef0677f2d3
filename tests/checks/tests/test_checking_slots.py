"""Test that checking mode verifies the arguments of all slots with a parameter for an object."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
HEADERS = "".join(path.read_text() for path in sorted((ROOT / "api/include/memrt").rglob("*.h")))
LIST = (ROOT / "api/slots.h").read_text()
CHECKED = set(re.findall(r"^ +CHECKED\((\w+),", LIST, re.MULTILINE))
TEST = (ROOT / "tests/c/api/test_checking_table.c").read_text()

COMMENT = re.compile(r"///[^\n]*|/\*.*?\*/", re.DOTALL)
SLOT = re.compile(r"^    memrt_(\w+)_fn \1\b", re.MULTILINE)
FUNCTION = re.compile(r"^typedef [^;]*?\(\*memrt_(\w+)_fn\)\((.*?)\);", re.DOTALL | re.MULTILINE)
POLICY = re.compile(
    r"memrt_policy_t \*\w|memrt_(?:(?:new|cuda)_options|hook|failure_plan)_t \*|void \*policy\b"
)
SCOPE = re.compile(r"memrt_scope_t \*\w|memrt_failure_plan_t \*")
MEMINFO = re.compile(r"memrt_meminfo_t \*\w")


def slots(parameter: re.Pattern[str]) -> list[str]:
    """Return the names of the slots with a parameter of the pattern."""
    text = COMMENT.sub("", HEADERS)
    functions = dict(FUNCTION.findall(text))
    table = text[text.index("typedef struct memrt_api {") : text.index("} memrt_api_t;")]
    found = [name for name in SLOT.findall(table) if parameter.search(functions[name])]
    assert len(found) > 10
    return found


def rows_of(macro: str) -> set[str]:
    """Return the slot names in a macro table of tests/c/api/test_checking_table.c."""
    rows = TEST[TEST.index(f"#define {macro}(SLOT)") :].split("\n\n")[0]
    return set(re.findall(r"SLOT\((\w+),", rows))


def test_slots_with_an_object_are_checked():
    objects = {*slots(POLICY), *slots(SCOPE), *slots(MEMINFO)}
    assert objects <= CHECKED


def test_every_slot_with_a_policy_is_tested():
    assert rows_of("POLICY_SLOTS") == set(slots(POLICY))


def test_every_slot_with_a_scope_is_tested():
    assert rows_of("SCOPE_SLOTS") == set(slots(SCOPE))
