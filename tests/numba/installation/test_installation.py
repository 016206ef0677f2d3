"""Install memrt as Numba's runtime: in one process, in children, and refused installations."""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import memrt.numba
import pytest
from memrt.numba import _contract

SITE = Path(memrt.numba.__file__).with_name("_site")

SHOW = """
import numba, numpy
from numba.core.runtime import _nrt_python as nrt
made = numba.njit(lambda n: numpy.ones(n))(3)
print(getattr(nrt, "memrt_version", "stock"), type(made.base).__name__, made.sum())
"""

ON_MEMRT = f"{memrt.__version__} _MemInfo 3.0\n"
ON_STOCK = "stock _MemInfo 3.0\n"

INSTALL = "import memrt.numba\nmemrt.numba.install()\n"
INSTALL_WITH_CHILDREN = "import memrt.numba\nmemrt.numba.install(children=True)\n"


# --- In one process ---


def test_import_without_install_keeps_numba_runtime(run_python):
    code = "import memrt.numba\nassert not memrt.numba.installed()\n" + SHOW
    code += "assert not memrt.numba.installed()\n"
    assert run_python(code).stdout == ON_STOCK


def test_install_before_the_numba_import_uses_memrt(run_python):
    code = INSTALL + "assert memrt.numba.installed()\n" + SHOW
    code += "assert memrt.numba.installed()\n"
    assert run_python(code).stdout == ON_MEMRT


def test_install_does_not_import_numba(run_python):
    run_python(INSTALL + "import sys\nassert 'numba' not in sys.modules\n")


def test_second_install_changes_nothing(run_python):
    code = f"import sys\n{INSTALL}first = list(sys.meta_path)\n{INSTALL}"
    code += f"assert sys.meta_path == first\n{SHOW}{INSTALL}assert sys.meta_path == first\n"
    assert run_python(code).stdout == ON_MEMRT


def test_numba_package_has_the_module_as_attribute(run_python):
    code = INSTALL + "import numba, sys\n"
    code += "module = numba.core.runtime._nrt_python\n"
    code += "assert module is sys.modules['numba.core.runtime._nrt_python']\n"
    code += "assert module.__name__ == 'numba.core.runtime._nrt_python'\n"
    code += "assert module.__file__ == memrt._memrt.__file__\n"
    run_python(code)


def test_install_after_the_numba_import_is_refused(run_python):
    code = "import numba, memrt.numba\n"
    code += (
        "try:\n    memrt.numba.install()\nexcept RuntimeError as error:\n    print(error)\n" + SHOW
    )
    message, show = run_python(code).stdout.splitlines(keepends=True)
    assert "before the first 'import numba'" in message
    assert "python -m memrt run --numba" in message
    assert show == ON_STOCK


def test_numba_and_numpy_count_in_the_same_account(run_python):
    code = INSTALL + SHOW + "memrt.enable()\nbefore = memrt.stats().alloc\n"
    code += "a = numpy.ones(1000)\nb = numba.njit(lambda n: numpy.ones(n))(1000)\n"
    code += "assert memrt.stats().alloc >= before + 2\n"
    code += "assert memrt.meminfo(a).nbytes == memrt.meminfo(b).nbytes == 8000\n"
    run_python(code)


# --- Child processes ---

SPAWNING = """
import multiprocessing, sys
{install}
def work(n):
    import numba, numpy
    from numba.core.runtime import _nrt_python as nrt
    made = numba.njit(lambda n: numpy.ones(n))(n)
    return getattr(nrt, "memrt_version", "stock"), float(made.sum())

if __name__ == "__main__":
    with multiprocessing.get_context(sys.argv[1]).Pool(1) as pool:
        print(*pool.apply(work, (3,)))
"""


@pytest.mark.parametrize("method", ["spawn", "forkserver", "fork"])
def test_multiprocessing_children_use_memrt(run_python, method):
    code = SPAWNING.format(install=INSTALL_WITH_CHILDREN)
    assert run_python(code, method).stdout == f"{memrt.__version__} 3.0\n"


@pytest.mark.parametrize("install", [INSTALL_WITH_CHILDREN, INSTALL])
def test_subprocess_children_use_memrt_only_if_requested(run_python, tmp_path, install):
    (tmp_path / "child.py").write_text(SHOW)
    code = install + "import subprocess, sys\n"
    code += "subprocess.run([sys.executable, 'child.py'], check=True)\n"
    expected = ON_MEMRT if "children" in install else ON_STOCK
    assert run_python(code).stdout == expected


CHILD = {"PYTHONPATH": str(SITE)}  # the environment of a child of install(children=True)
PACKAGES = str(Path(memrt.numba.__file__).parents[2])


def test_grandchildren_use_memrt(run_python, tmp_path):
    (tmp_path / "grandchild.py").write_text(SHOW)
    code = "import subprocess, sys\n"
    code += "subprocess.run([sys.executable, 'grandchild.py'], check=True)\n"
    assert run_python(code, env=CHILD).stdout == ON_MEMRT


@pytest.mark.parametrize(
    ("flags", "path", "expected"),
    [
        ([], SITE, ON_MEMRT),
        (["-I"], SITE, ON_STOCK),
        (["-E"], SITE, ON_STOCK),
        (["-S"], os.pathsep.join([str(SITE), PACKAGES]), ON_STOCK),  # -S hides the packages
        ([], "/some/where", ON_STOCK),
    ],
)
def test_child_uses_memrt_by_its_pythonpath_alone(run_python, flags, path, expected):
    assert run_python(SHOW, flags=flags, env={"PYTHONPATH": str(path)}).stdout == expected


def environment_without_memrt(tmp_path: Path) -> Path:
    """Make an environment with this Numba and without memrt. Return its Python."""
    folder = tmp_path / "environment"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    packages = next((folder / "lib").glob("python3.*")) / "site-packages"
    for entry in Path(PACKAGES).iterdir():
        if entry.name.startswith(("numba", "numpy", "llvmlite")):
            (packages / entry.name).symlink_to(entry)
    return folder / "bin" / "python"


def test_child_in_environment_without_memrt_keeps_numba_runtime(run_python, tmp_path):
    assert (
        run_python(SHOW, python=environment_without_memrt(tmp_path), env=CHILD).stdout == ON_STOCK
    )


def test_child_without_the_numba_import_imports_no_memrt(run_python):
    code = (
        "import sys; print([name for name in ('memrt', 'numpy', 'numba') if name in sys.modules])"
    )
    assert run_python(code, env=CHILD).stdout == "[]\n"


def test_sitecustomize_of_the_user_also_runs(run_python, tmp_path):
    folder = tmp_path / "theirs"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text("print('theirs')\n")
    paths = os.pathsep.join([str(SITE), str(folder)])
    assert run_python(SHOW, env={"PYTHONPATH": paths}).stdout == f"theirs\n{ON_MEMRT}"


@pytest.mark.parametrize("before", ["", "/some/where", ":/some/where", "/some/where:"])
def test_pythonpath_keeps_its_entries_after_the_memrt_folder(run_python, before):
    """An empty entry beside other entries means the current folder."""
    code = INSTALL_WITH_CHILDREN * 2 + "import os\nprint(os.environ['PYTHONPATH'])\n"
    result = run_python(code, env={"PYTHONPATH": before})
    assert result.stdout == (f"{SITE}:{before}\n" if before else f"{SITE}\n")


# --- The command line ---


def run_command(
    folder: Path, *arguments: str, flags=(), **environment: str
) -> subprocess.CompletedProcess:
    """Run program.py in a folder by `memrt run`."""
    return subprocess.run(
        [sys.executable, *flags, "-m", "memrt", "run", *arguments, "program.py"],
        env={**os.environ, **environment},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.slow
@pytest.mark.parametrize("flags", [[], ["-I"], ["-E"], ["-s"], ["-P"]], ids="".join)
def test_run_numba_puts_program_and_children_on_memrt(tmp_path, flags):
    if flags == ["-P"] and sys.version_info < (3, 11):
        pytest.skip("this Python has no option -P")
    (tmp_path / "show.py").write_text(SHOW)
    program = SHOW + "import subprocess, sys\nsys.stdout.flush()\n"
    program += "subprocess.run([sys.executable, 'show.py'], check=True)\n"
    (tmp_path / "program.py").write_text(program)
    done = run_command(tmp_path, "--quiet", "--numba", flags=flags)
    assert (done.stdout, done.stderr) == (ON_MEMRT * 2, "")


@pytest.mark.parametrize("flag", ["-I", "-E", "-S"])
def test_isolated_interpreter_can_install_memrt(run_python, flag):
    """With -S the program must add the folder of the packages to sys.path."""
    code = f"import sys\nsys.path.append({PACKAGES!r})\n{INSTALL}{SHOW}"
    assert run_python(code, flags=[flag]).stdout == ON_MEMRT


def test_run_without_numba_option_keeps_numba_runtime(tmp_path):
    (tmp_path / "program.py").write_text(SHOW)
    done = run_command(tmp_path, "--quiet")
    assert (done.stdout, done.stderr) == (ON_STOCK, "")


# --- Where it must refuse, or warn ---


def packages_without_numba(tmp_path: Path) -> Path:
    """Return a folder with links to memrt and NumPy only."""
    folder = tmp_path / "packages"
    folder.mkdir()
    for entry in Path(PACKAGES).iterdir():
        if entry.name.startswith(("memrt", "numpy")):
            (folder / entry.name).symlink_to(entry)
    return folder


def test_install_without_numba_gives_install_hint(run_python, tmp_path):
    code = "import memrt.numba\n"
    code += "try:\n    memrt.numba.install()\nexcept ImportError as error:\n    print(error)\n"
    path = str(packages_without_numba(tmp_path))
    result = run_python(code, flags=["-S"], env={"PYTHONPATH": path})
    assert result.stdout == ("Numba is not installed in this environment: pip install numba\n")


def test_run_numba_without_numba_gives_install_hint(tmp_path):
    (tmp_path / "program.py").write_text("print('ran')\n")
    path = str(packages_without_numba(tmp_path))
    done = run_command(tmp_path, "--numba", flags=["-S"], PYTHONPATH=path)
    assert done.returncode != 0
    assert done.stdout == ""
    assert "pip install numba" in done.stderr
    assert "Traceback" not in done.stderr


def doctored(tmp_path: Path, numba_folder: Path, file: str, old: str, new: str) -> Path:
    """Return a copy of the Numba sources that memrt reads, with one change in `file`."""
    for name in (
        "core/runtime/nrt.cpp",
        "core/runtime/nrt_external.h",
        "core/runtime/_nrt_pythonmod.c",
        "_arraystruct.h",
    ):
        target = tmp_path / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(numba_folder / name, target)
    text = (tmp_path / file).read_text()
    assert re.search(old, text), f"{file} has no {old}"
    (tmp_path / file).write_text(re.sub(old, new, text, count=1))
    return tmp_path


def test_installed_numba_matches_the_contract(numba_folder):
    assert _contract.differences(numba_folder) == []


@pytest.mark.parametrize(
    ("file", "old", "new", "words"),
    [
        (
            "core/runtime/nrt.cpp",
            r"void\s*\*data;",
            "size_t flags; void *data;",
            "must declare the fields",
        ),
        ("core/runtime/nrt.cpp", r"struct MemInfo \{", "struct Block {", "does not declare"),
        (
            "core/runtime/nrt_external.h",
            r"void \(\*acquire\)",
            "void (*hold)",
            "must declare the fields",
        ),
        ("_arraystruct.h", r"npy_intp itemsize;", "", "must declare the fields"),
        (
            "core/runtime/_nrt_pythonmod.c",
            r"declmethod\(MemInfo_alloc\);",
            "declmethod(MemInfo_alloc);\ndeclmethod(MemInfo_weak);",
            "needs helpers missing in memrt: MemInfo_weak",
        ),
        ("core/runtime/_nrt_pythonmod.c", r"(?s).*", "", "declares no helpers"),
    ],
)
def test_changed_contract_is_found(tmp_path, numba_folder, file, old, new, words):
    folder = doctored(tmp_path, numba_folder, file, old, new)
    found = _contract.differences(folder)
    assert len(found) == 1
    assert words in found[0]


def test_missing_numba_sources_are_4_differences(tmp_path):
    assert len(_contract.differences(tmp_path)) == 4


def test_changed_contract_is_refused_with_a_usable_version(tmp_path, numba_folder, monkeypatch):
    folder = doctored(
        tmp_path, numba_folder, "core/runtime/nrt.cpp", r"void\s*\*data;", "int flags; void *data;"
    )
    monkeypatch.setattr(_contract, "_installation", lambda: ("0.68.1", folder))
    with pytest.raises(
        ImportError, match=r"cannot run on memrt .*must declare the fields.*Use Numba 0\.\d+\.\d"
    ):
        _contract.verify()


@pytest.mark.parametrize("version", ["0.59.1", "0.99.0", "1.0"])
def test_version_out_of_range_warns_with_the_range(monkeypatch, numba_folder, version):
    monkeypatch.setattr(_contract, "_installation", lambda: (version, numba_folder))
    first, last = _contract.tested_versions()[0], _contract.tested_versions()[-1]
    with pytest.warns(RuntimeWarning, match=f"Numba {first} to {last}, got {version}"):
        _contract.verify()


def test_installed_numba_version_causes_no_warning(recwarn):
    _contract.verify()
    assert list(recwarn) == []
    assert importlib.metadata.version("numba") in memrt.numba.tested_versions()


# --- Nothing is written ---


def fingerprint(folder: Path) -> str:
    """Return a hash of names and contents of all files, except Python's own bytecode."""
    digest = hashlib.sha256()
    for file in sorted(folder.rglob("*")):
        if file.is_file() and file.suffix != ".pyc":
            digest.update(str(file).encode() + file.read_bytes())
    return digest.hexdigest()


def test_install_writes_nothing_into_numba(run_python, numba_folder):
    before = fingerprint(numba_folder)
    assert run_python(INSTALL_WITH_CHILDREN + SHOW).stdout == ON_MEMRT
    assert fingerprint(numba_folder) == before


def test_install_works_without_a_writable_home(run_python):
    environment = {"HOME": "/proc/nobody", "XDG_CACHE_HOME": "/proc/nobody"}
    assert run_python(INSTALL_WITH_CHILDREN + SHOW, env=environment).stdout == ON_MEMRT
