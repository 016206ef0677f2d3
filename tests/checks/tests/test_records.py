"""Test that the check of recorded results finds each kind of stale record."""

import json
import subprocess

import pytest
import records

PLAN = "bindings/memrt/_faults/plan.py"


@pytest.fixture
def project(tmp_path):
    """Make a project of one commit, with two source files and matching records."""
    for file, text in (
        ("runtime/heap.c", "int f(int a) { return a ? 1 : 2; }\n"),
        (PLAN, "if x: y"),
    ):
        (tmp_path / file).parent.mkdir(parents=True)
        (tmp_path / file).write_text(text)
    git = ["git", "-C", tmp_path, "-c", "user.name=t", "-c", "user.email=t@t"]
    for arguments in (["init", "-q"], ["add", "."], ["commit", "-qm", "one"]):
        subprocess.run([*git, *arguments], check=True)
    head = [*git, "rev-parse", "--short", "HEAD"]
    commit = subprocess.run(head, capture_output=True, text=True, check=True).stdout.strip()
    facts = {"date": "2026-01-02", "commit": commit}
    write(tmp_path, "coverage", {"facts": facts, "rows": [["runtime/heap.c", 2, 2]]})
    write(tmp_path, "coverage-bindings", {"facts": facts, "rows": [[PLAN, 2, 2]]})
    write(tmp_path, "failure-points", {"facts": facts, "rows": [["`memrt.alloc of 0`", 3]]})
    return tmp_path


def write(root, name, figures):
    folder = root / "docs" / "reliability"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.json").write_text(json.dumps(figures))


def change(root, name, **fields):
    path = root / "docs" / "reliability" / f"{name}.json"
    figures = json.loads(path.read_text())
    figures["facts"].update(fields.pop("facts", {}))
    write(root, name, {**figures, **fields})


def test_matching_records_are_accepted(project):
    assert records.violations(project, ["memrt.alloc"]) == []


@pytest.mark.parametrize(
    ("name", "fields", "fault"),
    [
        ("coverage", {"facts": {"commit": "0000000"}}, "coverage: commit must be in the history"),
        ("coverage", {"facts": {"commit": "1234567-dirty"}}, "coverage: commit must be of a clean"),
        ("coverage", {"facts": {"date": "yesterday"}}, "coverage: date must be YYYY-MM-DD, got y"),
        ("coverage", {"rows": []}, "coverage: runtime/heap.c has branches and no row"),
        ("coverage-bindings", {"rows": []}, f"coverage-bindings: {PLAN} has branches and no row"),
        (
            "failure-points",
            {"rows": [["1234567-dirty"], ["memrt.alloc"]]},
            "failure-points: commit",
        ),
        ("failure-points", {"rows": [["`memrt.allocate`"]]}, "failure-points: memrt.alloc is publ"),
    ],
)
def test_stale_record_is_reported(project, name, fields, fault):
    change(project, name, **fields)
    (found,) = records.violations(project, ["memrt.alloc"])
    assert found.startswith(fault)


def test_file_without_branches_needs_no_row(project):
    (project / "runtime" / "text.c").write_text('/* if */ const char *a = "while (x)";\n')
    debug = "#if MEMRT_DEBUG\nint f(int a) { return a ? 1 : 2; }\n#endif\n"
    (project / "runtime" / "debug.c").write_text(debug)
    assert records.violations(project, ["memrt.alloc"]) == []


def test_folder_without_records_is_refused(tmp_path, capsys):
    assert records.main(["records.py", str(tmp_path)]) == 2
    assert "no record under" in capsys.readouterr().err
