"""Test the coverage of the bindings: figures add up, and exclusions carry reasons."""

import bindings_coverage
import pytest
from bindings_coverage import Figures


def write(root, name, text):
    path = root / "bindings" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("src/a.c", "if (x) { /* GCOV_EXCL_BR_LINE */"),
        ("src/a.c", "if (x) { /* GCOV_EXCL_LINE: ? */"),
        ("memrt/a.py", "if x:  # pragma: no cover"),
        ("memrt/a.py", "if x:  # pragma: no branch -"),
    ],
)
def test_exclusion_without_a_reason_is_a_fault(tmp_path, name, line):
    write(tmp_path, name, f"\n{line}\n")
    (fault,) = bindings_coverage.unreasoned(tmp_path)
    assert fault == f"bindings/{name}:2: exclusion without a reason"


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("src/a.c", "if (x) { /* GCOV_EXCL_BR_LINE: the allocation of one word fails */"),
        ("memrt/a.py", "if x:  # pragma: no cover - runs in the process of the interpreter"),
        ("memrt/a.py", "if x:  # no exclusion"),
    ],
)
def test_exclusion_with_a_reason_is_accepted(tmp_path, name, line):
    write(tmp_path, name, f"{line}\n")
    assert list(bindings_coverage.unreasoned(tmp_path)) == []


def test_total_weighs_files_by_their_branches():
    rows = [Figures("a", 90, 90, []), Figures("b", 10, 0, [1]), Figures("c", 0, 0, [])]
    assert bindings_coverage.total(rows) == 90
    assert [row.percent for row in rows] == [100, 0, 100]


def test_line_counts_once_if_one_environment_reaches_it():
    def file(done, missing, branches, missing_branches):
        return {
            "executed_lines": done, "missing_lines": missing,
            "executed_branches": branches, "missing_branches": missing_branches,
        }  # fmt: skip

    (row,) = bindings_coverage.merge_environments(
        {
            "/a/site-packages/memrt/x.py": file([1, 2], [3, 4], [[2, 3]], [[2, 4]]),
            "/b/site-packages/memrt/x.py": file([1, 3], [2, 4], [], [[2, 3], [2, 4]]),
        }
    )
    assert (row.file, row.branches, row.taken) == ("bindings/memrt/x.py", 6, 4)
    assert row.missing == [2, 4]
