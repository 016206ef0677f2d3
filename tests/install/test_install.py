"""Tests of the installed package: programs build against CMake's install and against the wheel."""

from __future__ import annotations

import ctypes
import importlib.util
import os
import re
import subprocess
import sysconfig
from pathlib import Path

import memrt
import pytest
from consumers import CONSUMER, EXPECTED, ROOT, VERSION, run

pytestmark = pytest.mark.timeout(900)  # the first test builds the library


@pytest.fixture(scope="module")
def installed(tmp_path_factory) -> Path:
    """Install with CMake into a prefix, move the prefix, and return the new path."""
    folder = tmp_path_factory.mktemp("cmake")
    run("cmake", "-S", ROOT, "-B", folder / "build", "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release")
    run("cmake", "--build", folder / "build", "-j2")
    run("cmake", "--install", folder / "build", "--prefix", folder / "first")
    return (folder / "first").rename(folder / "moved")


@pytest.fixture(scope="module")
def packaged() -> Path:
    """Return the prefix inside the installed wheel."""
    return Path(memrt.get_library()).parents[1]


@pytest.fixture(params=["installed", "packaged"])
def prefix(request) -> Path:
    return request.getfixturevalue(request.param)


def test_program_builds_and_runs_by_pkg_config(prefix, packaged, tmp_path):
    search = {"PKG_CONFIG_PATH": str(prefix / "lib/pkgconfig")}
    assert run("pkg-config", "--modversion", "memrt", **search).strip() == VERSION
    in_wheel = prefix == packaged
    # The flags of the wheel have an rpath. A prefix may be a folder that the loader searches.
    rpath = [] if in_wheel else [f"-Wl,-rpath,{prefix}/lib"]
    for package, source in (("memrt", "program.c"), ("memrt-nrt", "compiled.c")):
        flags = run("pkg-config", "--cflags", "--libs", package, **search).split()
        assert f"-I{prefix}" in "".join(os.path.normpath(flag) for flag in flags)
        run("cc", "-std=c11", "-o", tmp_path / "program", CONSUMER / source, *flags, *rpath)
        assert run(tmp_path / "program") == EXPECTED


def test_program_builds_and_runs_by_find_package(prefix, tmp_path):
    run("cmake", "-S", CONSUMER, "-B", tmp_path, "-G", "Ninja", f"-Dmemrt_ROOT={prefix}")
    run("cmake", "--build", tmp_path)
    assert run(tmp_path / "program") == EXPECTED
    assert run(tmp_path / "compiled") == EXPECTED


@pytest.fixture
def suite(prefix, tmp_path):
    """Return a function that runs one test case of a user: exit status and output of Check."""
    flags = ["--cflags", "--libs", "memrt", "check"]
    paths = f"{prefix}/lib/pkgconfig:{os.environ.get('PKG_CONFIG_PATH', '')}"
    found = run("pkg-config", *flags, PKG_CONFIG_PATH=paths).split()
    warnings = ["-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Werror"]
    target, rpath = tmp_path / "suite", f"-Wl,-rpath,{prefix}/lib"
    run("cc", "-std=gnu11", *warnings, "-o", target, CONSUMER / "suite.c", *found, rpath)

    def run_case(case: str, **environment: str) -> tuple[int, str]:
        environment = {**os.environ, "CK_RUN_CASE": case, **environment}
        command = ["setsid", "--wait", str(target)]
        result = subprocess.run(command, capture_output=True, text=True, env=environment)
        return result.returncode, result.stdout

    return run_case


@pytest.mark.parametrize("fork", ["yes", "no"])
@pytest.mark.parametrize("checking", ["0", "1"])
def test_check_suite_without_leaks_passes(suite, fork, checking):
    status, said = suite("right", CK_FORK=fork, MEMRT_CHECK=checking)
    assert status == 0, said
    assert "100%: Checks: 2, Failures: 0, Errors: 0" in said


@pytest.mark.parametrize("fork", ["yes", "no"])
def test_check_suite_with_leaks_fails_and_lists_the_buffers(suite, fork):
    status, said = suite("wrong", CK_FORK=fork)
    assert status == 1
    assert "0%: Checks: 4, Failures: 4, Errors: 0" in said
    told = re.split(r"^/.*:[SF]:wrong:\w+:\d+: ", said, flags=re.MULTILINE)[1:]
    leak, many, live, peak = (text.splitlines() for text in told)
    assert leak == [
        "memrt: 2 buffers of this test are live",
        "  1000 bytes 'lookup table', 1 reference, policy 'default'",
        "  96 bytes, 2 references, policy 'default'",
    ]
    assert many[0] == "memrt: 15 buffers of this test are live"
    assert len(many) == 12
    assert many[-1] == "  and 5 more"
    assert "memrt_ck_live_bytes() == 10" in live[0]
    assert "memrt_ck_peak_bytes() == 2000" in peak[0]


def test_find_package_refuses_another_major_version(prefix, tmp_path):
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.20)\nproject(consumer LANGUAGES C)\n"
        "find_package(memrt 9.0 REQUIRED)\n"
    )
    command = ["cmake", "-S", tmp_path, "-B", tmp_path / "build", "-G", "Ninja"]
    command.append(f"-Dmemrt_ROOT={prefix}")
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode != 0
    assert "9.0" in result.stderr


def test_install_has_every_public_header(prefix):
    sources = [ROOT / folder for folder in ("api/include/memrt", "bindings/include/memrt")]
    expected = {path.relative_to(folder) for folder in sources for path in folder.rglob("*.h*")}
    folder = prefix / "include/memrt"
    assert {path.relative_to(folder) for path in folder.rglob("*.h*")} == expected


def test_dlpack_header_is_installed_with_its_licence(prefix):
    licence = "include/memrt/dlpack/LICENSE"
    assert (prefix / licence).read_text() == (ROOT / "api" / licence).read_text()


def test_gdb_script_has_the_name_of_the_library_file(prefix):
    (library,) = {path.resolve() for path in (prefix / "lib").glob("libmemrt.so*[!by]")}
    source = ROOT / "runtime/observe/gdb"
    script = Path(f"{library}-gdb.py").read_text()
    assert script == (source / "memrt_gdb.py").read_text()
    modules = {path.name for path in (source / "memrt_gdb").glob("*.py")}
    assert {path.name for path in Path(f"{library}-gdb").glob("*.py")} == modules


def test_install_names_no_folder_of_the_build(prefix):
    texts = [*prefix.glob("lib/pkgconfig/*.pc"), *prefix.glob("lib/cmake/memrt/*.cmake")]
    assert len(texts) >= 4
    for path in texts:
        assert str(ROOT) not in path.read_text()
        assert "/first" not in path.read_text()


def test_wheel_has_no_symbolic_links(packaged):
    assert [path for path in packaged.rglob("*") if path.is_symlink()] == []


def test_get_include_and_get_library_suffice_for_a_program(tmp_path):
    program, library = tmp_path / "program", Path(memrt.get_library())
    include, rpath = f"-I{memrt.get_include()}", f"-Wl,-rpath,{library.parent}"
    run("cc", "-std=c11", include, "-o", program, CONSUMER / "program.c", library, rpath)
    assert run(program) == EXPECTED


def test_library_shares_the_counters_of_the_package(tmp_path):
    target, library = tmp_path / "consumer.so", Path(memrt.get_library())
    source, rpath = CONSUMER / "library.c", f"-Wl,-rpath,{library.parent}"
    include = f"-I{memrt.get_include()}"
    run("cc", "-std=c11", "-shared", "-fPIC", include, "-o", target, source, library, rpath)
    consumer = ctypes.CDLL(str(target))
    consumer.make.restype = ctypes.c_void_p
    before = memrt.stats()
    meminfo = consumer.make(ctypes.c_size_t(12345))
    assert (memrt.stats() - before).live == 12345
    consumer.drop(ctypes.c_void_p(meminfo))
    assert (memrt.stats() - before).live == 0


def test_extension_module_needs_headers_and_no_linked_library(tmp_path):
    target = tmp_path / f"consumer{sysconfig.get_config_var('EXT_SUFFIX')}"
    includes = [f"-I{memrt.get_include()}", f"-I{sysconfig.get_path('include')}"]
    run("cc", "-shared", "-fPIC", *includes, "-o", target, CONSUMER / "extension.c")
    spec = importlib.util.spec_from_file_location("consumer", target)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    before = memrt.stats()
    assert module.make_and_drop() == 1000
    difference = memrt.stats() - before
    assert (difference.mi_alloc, difference.mi_free) == (1, 1)


def test_process_maps_a_single_libmemrt():
    maps = Path("/proc/self/maps").read_text().splitlines()
    mapped = {line.split()[-1] for line in maps if "libmemrt" in line}
    assert mapped == {str(Path(memrt.get_library()).resolve())}
