"""The public package: names, stubs, docstrings, files."""

import ast
import inspect
import pickle
import subprocess
import sys
import typing
from pathlib import Path

import memrt
import memrt.testing
import numpy as np
import pytest
from memrt import _memrt

PACKAGE = Path(memrt.__file__).parent
MODULES = (memrt, memrt.types, memrt.debug, memrt.telemetry, memrt.cuda)
NAMES = [
    (module, name)
    for module in MODULES
    for name in module.__all__
    if not isinstance(getattr(module, name), int)
]
FOREIGN = {"Array", "Trace"}  # annotated with names that their public modules do not have


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_public_names_exist_and_are_sorted(module):
    assert module.__all__ == sorted(module.__all__, key=lambda name: (name.lower() == name, name))
    for name in module.__all__:
        assert hasattr(module, name)
    assert set(dir(module)) - {"__version__"} == set(module.__all__)


def test_top_level_has_at_most_40_names():
    assert len(memrt.__all__) <= 40
    names = [name for module, name in NAMES if module is not memrt.cuda]  # has an `empty`, too
    assert len(set(names)) == len(names)


def test_public_results_and_functions_can_be_pickled():
    for thing in (memrt.stats(), memrt.alloc, memrt.debug.live, memrt.alignment(np.ones(3))):
        assert type(pickle.loads(pickle.dumps(thing))) is type(thing)


def test_package_has_a_py_typed_file():
    assert (PACKAGE / "py.typed").is_file()


def test_stub_declares_exactly_the_extension_names():
    tree = ast.parse((PACKAGE / "_memrt.pyi").read_text())
    declared = {
        node.name: node for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)
    }
    present = {n for n in dir(_memrt) if not n.startswith("_")} - {"api", "scope_variable"}
    assert set(declared) == present
    attributes = {n.name for n in declared["MemInfo"].body if isinstance(n, ast.FunctionDef)}
    assert {n for n in vars(memrt.MemInfo) if not n.startswith("__")} <= attributes


@pytest.mark.parametrize(("module", "name"), NAMES)
def test_public_names_have_docstrings_and_a_public_module(module, name):
    thing = getattr(module, name)
    text = inspect.getdoc(thing)
    assert text
    assert len(text) > 20
    assert text.isascii()
    if not inspect.ismodule(thing):
        assert thing.__module__ == module.__name__
    if inspect.isfunction(thing) or inspect.isbuiltin(thing):
        assert inspect.signature(thing) is not None
    if inspect.isclass(thing):
        if name not in FOREIGN:
            typing.get_type_hints(thing)
        for member, value in vars(thing).items():
            if not member.startswith("_") and (callable(value) or isinstance(value, property)):
                assert inspect.getdoc(value), f"{name}.{member}"


def test_help_shows_functions_and_classes():
    result = subprocess.run(
        [sys.executable, "-c", "import memrt; help(memrt); help(memrt.MemInfo)"],
        capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    for part in ("alloc(nbytes", "class Policy", "reference-counted", "refcount"):
        assert part in result.stdout


def test_headers_and_library_exist_at_the_reported_paths():
    include, library = Path(memrt.get_include()), Path(memrt.get_library())
    for header in ("memrt.h", "external.h", "import.h", "numpy.h"):
        assert (include / "memrt" / header).is_file()
    assert library.name == "libmemrt.so.1"
    assert library.is_file()


def test_process_loads_a_single_libmemrt(probe):
    maps = Path("/proc/self/maps").read_text()
    files = {line.split()[-1] for line in maps.splitlines() if "libmemrt" in line}
    assert files == {str(Path(memrt.get_library()).resolve())}


def test_version_equals_the_version_of_the_header():
    header = Path(memrt.get_include()) / "memrt" / "version.h"
    assert f'MEMRT_VERSION "{memrt.__version__}"' in header.read_text()
