"""Test that the check of prose reads all kinds of text, finds riddles and accepts plain words."""

from __future__ import annotations

import subprocess
import sys

import pytest
import words

RIDDLE = "Whoever asks is told what it is. " * 20
PLAIN = "Return the policy of a block. " * 20
NAME = "x" * 61


def check(root, name, text):
    """Run the check on a repository of one file."""
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    subprocess.run(["git", "init", "--quiet", root], check=True)
    subprocess.run(["git", "-C", root, "add", "."], check=True)
    command = [sys.executable, words.__file__, root]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("name", "form"),
    [
        ("runtime/a.c", "/// {}\nint x;\n"),
        ("runtime/a.h", "/* {} */\n"),
        ("bindings/a.py", "# {}\n"),
        ("bindings/b.py", 'def f():\n    """{}"""\n'),
        ("docs/a.md", "{}\n"),
        ("CMakeLists.txt", "# {}\n"),
        ("runtime/b.c", 'const char *x = "{}";\n'),
        ("tests/coverage/uncovered.txt", "a.c\nif (what) {{\n1: {}\n"),
        ("tests/mutation/survivors.txt", "a.c: what ## 1 → 2\n{}\n"),
        ("tests/settings.txt", "# {}\nMEMRT_CHECK=1\n"),
        ("bindings/c.py", "def f():\n    raise ValueError(f'{{f}}: {}')\n"),
    ],
)
def test_riddles_are_found_in_each_language(tmp_path, name, form):
    found = check(tmp_path, name, form.format(RIDDLE))
    assert found.returncode == 1
    assert f"{name}:" in found.stdout
    assert check(tmp_path, name, form.format(PLAIN)).returncode == 0


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("runtime/a.c", "const char *x[] = {" + '"what is it", ' * 50 + "};\n"),
        ("bindings/a.py", "x = [" + "'what is it', " * 50 + "]\n"),
        ("docs/a.md", f"```\n{RIDDLE}\n```\n"),
        ("docs/benchmarks.md", RIDDLE),
    ],
    ids=["short C strings", "short Python strings", "code block", "generated page"],
)
def test_code_and_generated_pages_are_left_out(tmp_path, name, text):
    assert check(tmp_path, name, text).returncode == 0


@pytest.mark.parametrize(
    ("name", "text"),
    [("tests/c/a.c", f"TEST({NAME})\n"), ("tests/a.py", f"def test_{NAME}(): pass\n")],
)
def test_long_test_names_are_found(tmp_path, name, text):
    found = check(tmp_path, name, text)
    assert found.returncode == 1
    assert "must have at most 60 characters" in found.stdout


def test_small_files_count_together(tmp_path):
    for number in range(20):
        (tmp_path / f"{number}.md").write_text("Whoever asks is told what it is.\n")
    assert "(small files)" in check(tmp_path, "20.md", "Whoever is told.\n").stdout
