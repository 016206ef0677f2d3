"""NEP 49's secret_data_allocator as an allocator of a policy: in Python, in C and in Cython."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import memrt
import pytest
from consumers import run

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "allocators"
CLAUSES = ("alignment", "blocks", "smallest", "refusal", "free-elsewhere", "threads", "fork")

PROGRAM = """
import sys
import memrt, numpy as np
sys.path.insert(0, ".")
{load}
with memrt.Policy(allocator=allocator) as policy:
    array = np.arange(1000.0)
    array.resize(5000, refcheck=False)
    page = memrt.empty(100, alignment=4096)
    secret = ctypes.string_at(array.ctypes.data - {lead})
assert array[:1000].sum() == 499500 and policy.stats().live > 40000
assert secret.startswith(b"originally allocated "), secret
del array, page
assert {unmatched} == 0
print("ok")
"""


def build_python(folder: Path) -> tuple[str, str, str]:
    shutil.copy(EXAMPLES / "secret_data.py", folder)
    return "secret_data:allocator", "from secret_data import allocator", "allocator.unmatched"


def build_c(folder: Path) -> tuple[str, str, str]:
    library = folder / "secret_data.so"
    flags = ("-std=c11", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC")
    run("cc", *flags, f"-I{memrt.get_include()}", EXAMPLES / "secret_data.c", "-o", library)
    count = "ctypes.c_ulong.in_dll(ctypes.CDLL('./secret_data.so'), 'secret_data_unmatched').value"
    return "./secret_data.so:secret_data", "allocator = './secret_data.so:secret_data'", count


def build_cython(folder: Path) -> tuple[str, str, str]:
    shutil.copytree(EXAMPLES / "cython", folder, dirs_exist_ok=True)
    run(sys.executable, "setup.py", "-q", "build_ext", "--inplace")
    name = "secret_data_cython"
    return f"{name}:allocator", f"from {name} import allocator, unmatched", "unmatched()"


@pytest.mark.parametrize("build", [build_python, build_c, build_cython])
def test_secret_data_allocator_meets_contract(build, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    target, load, unmatched = build(tmp_path)
    chosen = [word for name in CLAUSES for word in ("--clause", name)]
    run(sys.executable, "-m", "memrt", "check-allocator", *chosen, target)
    code = "import ctypes\n" + PROGRAM.format(load=load, unmatched=unmatched, lead=128)
    assert run(sys.executable, "-c", code) == "ok\n"
