"""Source text of allocation sites in recordings."""

import linecache
import subprocess
import sys

import memrt
import pytest
from memrt._profile import source
from memrt._profile.recording import loads

CODE = "# first\n\nif True:\n    # before\n    made = memrt.zeros(4097)\n    # after\n"


def excerpts_of(code, file):
    """Run code with `file` as its name, and return the excerpts of the code's allocation."""
    space = {"memrt": memrt}
    with memrt.debug.tracking():
        compiled = compile(code, file.replace("\0", ""), "exec")  # refuses NUL
        exec(compiled.replace(co_filename=file), space)
    buffer = max(memrt.debug.live(), key=lambda each: each.id)
    assert buffer.nbytes == 4097 * 8
    found = source.excerpts([buffer.site_number] * 3)
    space.clear()  # CPython 3.13 without a GIL keeps functions, with their globals, for ever
    return found


def test_excerpt_has_the_line_and_its_neighbours(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(CODE)
    ((frame, first, lines),) = excerpts_of(CODE, str(path))
    assert (frame.file, frame.line, first) == (str(path), 5, 3)
    assert lines == ["if True:", "    # before", "    made = memrt.zeros(4097)", "    # after"]


def test_common_indentation_is_removed_and_long_lines_are_cut(tmp_path):
    path = tmp_path / "program.py"
    code = "def f():\n\tif True:\n" + f"\t\tkept.append(memrt.zeros(4097))  # {'x' * 500}\n" * 3
    path.write_text(f"kept = []\n{code}f()\n")
    ((_, first, lines),) = excerpts_of(path.read_text(), str(path))
    assert first == 4
    assert lines[-1] == "f()"
    assert lines[0].startswith(" " * 8 + "kept.append(memrt.zeros(4097))  # xxx")
    assert (len(lines[0]), lines[0][-1]) == (source.MOST_CHARACTERS, "…")


def test_empty_lines_around_the_excerpt_are_left_out(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(code := "\n\nmade = memrt.zeros(4097)\n \n# last\n\n")
    ((_, first, lines),) = excerpts_of(code, str(path))
    assert (first, lines) == (3, ["made = memrt.zeros(4097)", "", "# last"])


def test_cell_of_a_notebook_has_source_text():
    name = "<ipython-input-2-abcdef>"
    linecache.cache[name] = (len(CODE), None, CODE.splitlines(keepends=True), name)
    try:
        ((frame, _, lines),) = excerpts_of(CODE, name)
    finally:
        del linecache.cache[name]
    assert "made = memrt.zeros(4097)" in lines[2]
    assert "In[2], line 5" in str(frame)


@pytest.mark.parametrize(
    "name", ["missing.py", "<string>", "/dev/zero", "NUL\0.py", "short.py", "binary.py", "large.py"]
)
def test_code_without_readable_source_has_no_excerpt(tmp_path, monkeypatch, name):
    monkeypatch.setattr(source, "MOST_BYTES", 1000)
    (tmp_path / "short.py").write_text("# shorter than the program\n")
    (tmp_path / "binary.py").write_bytes(b"\xff\xfe\n" * 9)
    (tmp_path / "large.py").write_text(CODE + "#" * 1000)
    path = name if name[0] in "</" else str(tmp_path / name)
    assert excerpts_of(CODE, path) == []


def test_source_file_of_three_mebibytes_is_read(tmp_path):
    file = tmp_path / "generated.py"
    file.write_text(CODE + "#" * (3 << 20))
    assert excerpts_of(CODE, str(file)) != []


def test_recording_has_the_source_of_peak_total_and_live_lines(tmp_path):
    lines = [f"high = np.ones({100_000 + i})" for i in range(100)]
    lines += ["del high", "kept = np.ones(5000)"]
    script = tmp_path / "program.py"
    script.write_text("\n".join(["import numpy as np", *lines, ""]))
    command = [sys.executable, "-m", "memrt", "run", "--quiet", "--record", tmp_path / "file"]
    subprocess.run([*command, script], check=True, timeout=60)
    (document,) = loads((tmp_path / "file").read_bytes())
    rows = {document["frames"][frame]: rest for frame, *rest in document["sources"]}
    assert 30 < len(rows) <= source.MOST_EXCERPTS
    line, first, text = rows[f"<module> at {script}:103"]
    assert (line, first) == (103, 101)
    assert text == [*lines[99:]]
