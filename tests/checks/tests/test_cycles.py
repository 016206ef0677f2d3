"""Test the check of cycles: by includes, by symbols and by imports."""

from __future__ import annotations

import subprocess
from pathlib import Path

import cycles

ROOT = Path(__file__).resolve().parents[3]


def write(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def test_circle_of_includes_is_found(tmp_path):
    include = '#include "runtime/{}.h"\n'
    files = {f"runtime/{a}.h": include.format(b) for a, b in ("ab", "bc", "cb", "da")}
    uses = cycles.by_includes(write(tmp_path, files))
    assert cycles.circles(uses) == [["runtime/b", "runtime/c"]]


def test_circle_of_symbols_is_found_without_includes(tmp_path):
    files = {"runtime/a.c": "void b(void);\nvoid a(void) { b(); }\n"}
    files["runtime/b.c"] = "void a(void);\nvoid b(void) { a(); }\n"
    write(tmp_path, files)
    for name in files:
        output = tmp_path / "objects" / f"{name}.o"
        output.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(["cc", "-c", tmp_path / name, "-o", output], check=True)
    uses = cycles.by_symbols(tmp_path, tmp_path / "objects")
    assert cycles.circles(uses) == [["runtime/a", "runtime/b"]]


def test_circle_of_local_imports_is_found(tmp_path):
    files = {"_a.py": "from memrt import _b\n", "_b.py": "def f():\n    from memrt._a import x\n"}
    files["_c.py"] = "if TYPE_CHECKING:\n    from memrt._d import x\n"
    files["_d.py"] = "from memrt import _c\n"
    uses = cycles.by_imports(
        write(tmp_path, {f"{cycles.PACKAGE}/{name}": text for name, text in files.items()})
    )
    assert cycles.circles(uses) == [["memrt._a", "memrt._b"]]


def test_project_has_no_circle_of_includes_and_imports():
    for uses in (cycles.by_includes(ROOT), cycles.by_imports(ROOT)):
        assert len(uses) > 30
        assert cycles.circles(uses) == []
