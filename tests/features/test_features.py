"""Test the check of the feature table on small tables. The table of the project passes."""

from __future__ import annotations

import features
import pytest

PEER = '[peers.umf]\nname = "UMF"\nkind = "pools"\nread = "1.0"\n[peers.umf.pages]\nfile = "http://u"\n'
ROW = """\
[[theme]]
name = "Files"
[[theme.feature]]
text = "Arrays in files"
memrt = "yes"
guide = "guide/files"
tests = ["c/test_a.c::first", "python/test_b.py::test_second"]
yes = { umf = "file#part" }
"""


@pytest.fixture
def project(tmp_path):
    """Return a function that makes a project with a table of one row."""

    def make(row: str = ROW):
        for name, text in {
            features.SOURCE: PEER + row,
            "tests/c/test_a.c": "TEST(first)\n{\n}\nTEST_EACH(third, 2)\n{\n}\n",
            "tests/python/test_b.py": "async def test_second():\n    pass\n",
            "docs/guide/files.md": "# Files\n",
        }.items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(text)
        return tmp_path

    return make


def test_features_of_the_project_pass(capsys):
    assert features.main([]) == 0, capsys.readouterr().out


def test_page_has_row_answer_and_tests(project):
    root = project()
    assert features.main(["--write"], root) == features.main([], root) == 0
    page = (root / features.PAGE).read_text()
    row = "| 1 | [Arrays in files](guide/files.md) | yes | [yes](http://u#part) |\n"
    assert row in page
    assert "- **1**: `c/test_a.c::first`, `python/test_b.py::test_second`\n" in page


def test_stale_page_is_found(project, capsys):
    root = project()
    features.main(["--write"], root)
    project(ROW.replace("Arrays in files", "Files for arrays"))
    assert features.main([], root) == 1
    assert "docs/features.md differs from" in capsys.readouterr().out


def test_page_with_too_many_lines_is_not_written(project, capsys):
    rows = ROW + ROW.partition('"Files"\n')[2] * features.LINES_MAX
    root = project(rows)
    assert features.main(["--write"], root) == 1
    assert "at most 250 lines" in capsys.readouterr().out
    assert not (root / features.PAGE).exists()


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ("::first", "::fourth", "test must exist, got c/test_a.c::fourth"),
        ("c/test_a.c", "c/test_z.c", "test must exist, got c/test_z.c::first"),
        ("::test_second", "::test_sec", "test must exist, got python/test_b.py::test_sec"),
        ("guide/files", "guide/gone", "guide page must exist, got guide/gone"),
        ("guide =", "page =", "key must be known, got page"),
        ('memrt = "yes"', 'memrt = "maybe"', "memrt must be yes, partly or no, got maybe"),
        ('memrt = "yes"', 'memrt = "no"', "without an implementation must have no tests"),
        ("tests =", "partly = {} #", "a feature of memrt must have tests and a guide page"),
        ('umf = "file#part"', "", "umf must have 1 answer, got 0"),
        ("yes =", '"not documented" = ["umf"]\nyes =', "umf must have 1 answer, got 2"),
        ("umf = ", "rmm = ", "peer must be a table of the file, got rmm"),
        ("file#part", "gone#part", "source of umf must be a page of the peer, got gone#part"),
        ('yes = { umf = "file#part"', 'partly = { umf = "file"', "only partly must have a reason"),
        ('"file#part"', '["file", "why"]', "only partly must have a reason, got yes"),
        ('yes = { umf = "file#part" }', '"not documented" = ["umf"]', "file of umf is never named"),
    ],
)
def test_fault_of_a_row_is_found(old, new, fault, project):
    root = project(ROW.replace(old, new))
    assert fault in "\n".join(features.violations(root, features.load(root)))


def test_partly_has_its_reason_and_other_answers_are_short(project):
    row = ROW.replace('yes = { umf = "file#part"', 'partly = { umf = ["file", "on request"]')
    data = features.load(project(row))
    assert '[partly](http://u "on request")' in features.page_text(data)
    data = features.load(project(ROW.replace("yes = {", '"does not apply" = {')))
    assert "[n/a](http://u#part)" in features.page_text(data)


def test_missing_feature_of_memrt_needs_no_tests(project):
    kept = [line for line in ROW.splitlines() if not line.startswith(("guide", "tests"))]
    root = project("\n".join(kept).replace('memrt = "yes"', 'memrt = "no"'))
    assert features.violations(root, features.load(root)) == []
    assert "| 1 | Arrays in files | no |" in features.page_text(features.load(root))
