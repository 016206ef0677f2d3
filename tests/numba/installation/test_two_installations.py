"""Two installations of memrt with different versions: Numba uses one, both see its memory."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import memrt
import memrt.numba
import pytest

pytestmark = pytest.mark.slow

PACKAGE = Path(memrt.__file__).parent
# Another version of the same length, because bytes in the library are replaced. The last digit
# stays, because another string such as "0" may share the last bytes.
OTHER = re.sub(r"\d(?!$)", "9", memrt.__version__)

SHOW = """
import numba, numpy
from numba.core.runtime import _nrt_python as nrt
made = numba.njit(lambda n: numpy.ones(n))(3)
print(getattr(nrt, "memrt_version", "stock"), nrt.__file__, made.sum())
"""

INSTALL_AND_START = """
import os, subprocess, sys
import memrt.numba
memrt.numba.install(children=True)
print(memrt.__version__, flush=True)
site = os.environ["PYTHONPATH"].split(os.pathsep)[0]
path = os.pathsep.join([site, *sys.argv[1:]])
subprocess.run([sys.executable, "child.py"], env={**os.environ, "PYTHONPATH": path}, check=True)
"""

# Removes the imported package from sys.modules, and imports the second package.
IMPORT_BOTH = """
import sys
import memrt as first, memrt.numba as first_numba
first.Policy, first.stats # a later use would find the second package
{before}
for name in [name for name in sys.modules if name.partition(".")[0] == "memrt"]:
    del sys.modules[name]
sys.path.insert(0, sys.argv[1])
import memrt as second, memrt.numba as second_numba
assert second.__file__.startswith(sys.argv[1]) and not first.__file__.startswith(sys.argv[1])
{after}
import numba, numpy
from numba.core.runtime import _nrt_python as nrt
array = numba.njit(lambda n: numpy.ones(n))(1000)
assert str(first.stats()) == str(second.stats()) and first.stats().live == 8000
assert first.meminfo(array).nbytes == second.meminfo(array).nbytes == 8000
assert first.__version__ == second.__version__ == nrt.memrt_version
assert first.get_library() == second.get_library()
maps = {{line.split()[-1] for line in open("/proc/self/maps") if "libmemrt" in line}}
assert len(maps) == 1, maps
print(nrt.__file__)
"""


def relabel(folder: Path) -> None:
    """Change the version in the library and in the metadata to OTHER."""
    library = folder / "memrt" / Path(memrt.get_library()).relative_to(PACKAGE)
    old, new = (b"\0%s\0" % version.encode() for version in (memrt.__version__, OTHER))
    assert library.read_bytes().count(old) == 1
    library.write_bytes(library.read_bytes().replace(old, new))
    metadata = folder / f"memrt-{OTHER}.dist-info" / "METADATA"
    metadata.parent.mkdir()
    metadata.write_text(f"Metadata-Version: 2.1\nName: memrt\nVersion: {OTHER}\n")


@pytest.fixture
def other(tmp_path) -> Path:
    """Return a folder with another version of memrt, for an early place on sys.path."""
    folder = tmp_path / "other"
    shutil.copytree(PACKAGE, folder / "memrt", ignore=shutil.ignore_patterns("__pycache__"))
    relabel(folder)
    return folder


def extension_of(package: Path) -> Path:
    return next(package.glob("_memrt.*.so"))


@pytest.fixture
def parent_and_child(run_python, tmp_path):
    """Return a function that runs a program and a child, with memrt installed for children.

    The function returns the output lines of both.
    """

    def run(path_of_parent: Path | None, path_of_child: Path | None) -> list[str]:
        (tmp_path / "child.py").write_text(SHOW)
        env = {"PYTHONPATH": str(path_of_parent)} if path_of_parent else {}
        arguments = [str(path_of_child)] if path_of_child else []
        result = run_python(INSTALL_AND_START, *arguments, env=env)
        assert result.stderr == ""
        return result.stdout.splitlines()

    return run


def test_child_with_another_memrt_uses_its_own_memrt(parent_and_child, other):
    parent, child = parent_and_child(None, other)
    assert parent == memrt.__version__
    assert child == f"{OTHER} {extension_of(other / 'memrt')} 3.0"


def test_child_memrt_with_renamed_modules_works(parent_and_child, other):
    folder = other / "memrt" / "numba"
    (folder / "_contract.py").rename(folder / "_agreement.py")
    for path in folder.glob("*.py"):
        path.write_text(path.read_text().replace("_contract", "_agreement"))
    assert parent_and_child(None, other)[1].startswith(f"{OTHER} ")


def test_child_without_memrt_of_its_parent_uses_its_own_memrt(parent_and_child, other):
    parent, child = parent_and_child(other, None)
    assert parent == OTHER
    assert child == f"{memrt.__version__} {extension_of(PACKAGE)} 3.0"


def test_child_memrt_without_numba_support_keeps_numba_runtime(parent_and_child, other):
    shutil.rmtree(other / "memrt" / "numba")
    assert parent_and_child(None, other)[1].startswith("stock ")


def test_child_memrt_for_another_numba_ends_with_a_message(tmp_path, other, numba_folder):
    contract = other / "memrt" / "numba" / "_contract.py"
    contract.write_text(contract.read_text().replace('("refct", "dtor"', '("dtor", "refct"'))
    (tmp_path / "child.py").write_text(SHOW)
    site = PACKAGE / "numba" / "_site"
    done = subprocess.run(
        [sys.executable, "child.py"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(site), str(other)])},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stdout == ""
    assert (
        f"cannot run on memrt {OTHER}: nrt.cpp must declare the fields"
        in done.stderr.splitlines()[-1]
    )


def test_two_installations_share_a_library_and_an_account(run_python, other):
    code = IMPORT_BOTH.format(before="", after="first_numba.install()\nsecond_numba.install()")
    assert run_python(code, str(other)).stdout.strip() == str(extension_of(other / "memrt"))


def test_numba_keeps_the_memrt_of_its_import(run_python, other):
    code = IMPORT_BOTH.format(
        before="first_numba.install()\nimport numba",
        after="assert second_numba.installed()\nsecond_numba.install()",
    )
    code += """
for memrt in (first, second):
    with memrt.Policy(name="of it"):
        assert memrt.meminfo(numba.njit(lambda n: numpy.ones(n))(3)).policy == "of it"
"""
    assert run_python(code, str(other)).stdout.strip() == str(extension_of(PACKAGE))
