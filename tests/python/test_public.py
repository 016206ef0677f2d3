"""The package as people meet it: names, stubs, texts, files."""

import ast
import inspect
import subprocess
import sys
from pathlib import Path

import memrt
import memrt.testing
import pytest
from memrt import _memrt

PACKAGE = Path(memrt.__file__).parent


def test_all_names_exist_and_are_sorted():
    assert memrt.__all__ == sorted(memrt.__all__, key=lambda name: (name.lower() == name, name))
    for name in memrt.__all__:
        assert hasattr(memrt, name)


def test_the_package_says_that_it_is_typed():
    assert (PACKAGE / "py.typed").is_file()


def test_the_stub_declares_exactly_what_the_extension_has():
    tree = ast.parse((PACKAGE / "_memrt.pyi").read_text())
    declared = {
        node.name: node for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)
    }
    present = {n for n in dir(_memrt) if not n.startswith("_")} - {"api", "scope_variable"}
    assert set(declared) == present
    attributes = {n.name for n in declared["MemInfo"].body if isinstance(n, ast.FunctionDef)}
    assert {n for n in vars(memrt.MemInfo) if not n.startswith("__")} <= attributes


@pytest.mark.parametrize("name", [n for n in memrt.__all__ if n != "testing"])
def test_everything_public_explains_itself(name):
    thing = getattr(memrt, name)
    text = inspect.getdoc(thing)
    assert text
    assert len(text) > 20
    assert text.isascii()
    if inspect.isclass(thing):
        for member, value in vars(thing).items():
            if not member.startswith("_") and (callable(value) or isinstance(value, property)):
                assert inspect.getdoc(value), f"{name}.{member}"


def test_help_can_be_read():
    result = subprocess.run(
        [sys.executable, "-c", "import memrt; help(memrt); help(memrt.MemInfo)"],
        capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    for part in ("alloc(nbytes", "class Policy", "reference-counted", "refcount"):
        assert part in result.stdout


def test_headers_and_library_are_where_the_package_says():
    include, library = Path(memrt.get_include()), Path(memrt.get_library())
    for header in ("memrt.h", "external.h", "import.h", "numpy.h"):
        assert (include / "memrt" / header).is_file()
    assert library.name == "libmemrt.so.1"
    assert library.is_file()


def test_there_is_one_library_in_the_process(probe):
    maps = Path("/proc/self/maps").read_text()
    files = {line.split()[-1] for line in maps.splitlines() if "libmemrt" in line}
    assert files == {str(Path(memrt.get_library()).resolve())}


def test_version_is_that_of_the_header():
    header = Path(memrt.get_include()) / "memrt" / "version.h"
    assert f'MEMRT_VERSION "{memrt.__version__}"' in header.read_text()
