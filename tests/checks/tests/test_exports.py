"""Test the export check with seeded violations, and on the installed library."""

from __future__ import annotations

import subprocess
from pathlib import Path

import exports

GOOD = "int memrt_get_api(void){return 1;} int memrt_version(void){return 1;}\n"


def library(folder: Path, text: str, *flags: str) -> Path:
    """Compile a shared library from C text."""
    source, target = folder / "planted.c", folder / "planted.so"
    source.write_text(text)
    command = ["cc", "-shared", "-fPIC", *flags, "-o", str(target), str(source)]
    subprocess.run(command, check=True)
    return target


def test_library_with_two_exports_passes(tmp_path):
    planted = library(tmp_path, GOOD, "-Wl,-soname,libmemrt.so.1")
    assert exports.library_violations(planted) == []


def test_third_exported_name_is_found(tmp_path):
    planted = library(tmp_path, GOOD + "int memrt_third;", "-Wl,-soname,libmemrt.so.1")
    assert exports.library_violations(planted) == [
        f"{planted}: exports the internal symbol memrt_third"
    ]


def test_missing_export_is_found(tmp_path):
    planted = library(tmp_path, "int memrt_get_api;", "-Wl,-soname,libmemrt.so.1")
    assert exports.library_violations(planted) == [f"{planted}: does not export memrt_version"]


def test_library_that_needs_another_library_is_found(tmp_path):
    flags = ["-Wl,-soname,libmemrt.so.1", "-Wl,--no-as-needed", "-lgcc_s"]
    found = exports.library_violations(library(tmp_path, GOOD, *flags))
    assert [line for line in found if "needs libgcc_s.so" in line] == found != []


def test_wrong_soname_is_found(tmp_path):
    found = exports.library_violations(library(tmp_path, GOOD))
    assert len(found) == 1
    assert "SONAME" in found[0]


def test_extension_with_a_second_runtime_is_found(tmp_path):
    found = exports.extension_violations(
        library(tmp_path, "int PyInit__memrt, PyInit__nrt_python;")
    )
    assert len(found) == 1
    assert "second runtime" in found[0]


def archive(folder: Path, text: str) -> Path:
    """Compile a static library from C text."""
    source, middle, target = (folder / f"planted.{kind}" for kind in "coa")
    source.write_text(text)
    subprocess.run(["cc", "-c", "-o", str(middle), str(source)], check=True)
    subprocess.run(["ar", "rc", str(target), str(middle)], check=True)
    return target


def test_static_library_with_the_prefix_passes(tmp_path):
    planted = archive(tmp_path, "int memrt_get_api; int memrt__inside; static int other;")
    assert exports.violations(planted) == []


def test_symbols_of_probes_pass(tmp_path):
    base = '__asm__(".weak _.stapsdt.base\\n_.stapsdt.base: .space 1");'
    planted = archive(tmp_path, f"int memrt_get_api; {base}")
    assert exports.violations(planted) == []


def test_static_library_name_without_the_prefix_is_found(tmp_path):
    planted = archive(tmp_path, "int memrt_get_api; int os_page_size;")
    assert exports.violations(planted) == [f"{planted}: os_page_size lacks the prefix"]


def test_static_library_without_symbols_is_found(tmp_path):
    planted = archive(tmp_path, "static int other;")
    assert exports.violations(planted) == [f"{planted}: defines no symbol"]


def test_installed_library_passes_the_export_check():
    import memrt

    assert exports.library_violations(Path(memrt.get_library())) == []


def test_installed_nrt_library_passes_the_export_check():
    import memrt

    library = Path(memrt.get_library()).with_name("libmemrt_nrt.so.1")
    assert exports.violations(library) == []


def test_nrt_library_that_links_python_is_found(tmp_path):
    names = "".join(f"int {name};" for name in exports.NRT_EXPORTS)
    planted = library(
        tmp_path, names, "-Wl,-soname,libmemrt_nrt.so.1", "-Wl,--no-as-needed", "-lgcc_s"
    )
    found = exports.nrt_violations(planted)
    assert [line for line in found if "needs libgcc_s.so" in line]
    assert f"{planted}: does not link libmemrt.so.1" in found


def test_installed_extension_passes_the_export_check():
    from memrt import _memrt

    assert exports.extension_violations(Path(_memrt.__file__)) == []
