"""The public package: names, stubs, docstrings, files."""

import ast
import inspect
import pickle
import re
import subprocess
import sys
import typing
from pathlib import Path

import memrt
import memrt.testing
import numpy as np
import pytest
from gil import needs_gil
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


def run_python(code):
    """Run code in a new interpreter, and return the printed text."""
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    assert result.stderr == ""
    return result.stdout


def test_import_loads_only_the_modules_of_the_public_names():
    loaded = run_python(
        "import sys, numpy; before = set(sys.modules); import memrt; "
        "print(*sorted(set(sys.modules) - before))"
    ).split()
    public = {"memrt", "memrt.debug", "memrt.telemetry", "memrt.testing", "memrt.types"}
    private = {"memrt._memrt", "memrt._support", "memrt._support.options", "memrt._support.public"}
    assert {name for name in loaded if name.startswith("memrt")} == public | private
    assert not {"concurrent.futures", "dataclasses", "html", "json", "logging"} & set(loaded)


def test_plain_run_loads_no_module_for_reports():
    code = "import sys; print(*sorted(sys.modules))"
    numpy_alone = [sys.executable, "-c", f"import numpy; {code}"]
    command = [sys.executable, "-m", "memrt", "run", "--quiet", "-c", code]
    of_numpy, loaded = (
        subprocess.check_output(each, text=True, timeout=60).split()
        for each in (numpy_alone, command)
    )
    memrt_loaded = {name for name in loaded if name.startswith("memrt.")}
    assert {name for name in memrt_loaded if name.count(".") == 2 and ".commands." in name} == {
        "memrt.commands.output", "memrt.commands.programs", "memrt.commands.run",
    }  # fmt: skip
    assert not memrt_loaded & {"memrt._holders", "memrt._profile", "memrt._tracking", "memrt.cuda"}
    reports = {"email", "html", "json", "socket", "subprocess"} - set(of_numpy)
    assert "json" in reports
    assert not reports & set(loaded)


def names_of(imports):
    """Return the names that import statements bind, by module."""
    found = {}
    for node in imports:
        found.setdefault(node.module, set()).update(each.name for each in node.names)
    return found


@pytest.mark.parametrize("file", ["__init__.py", "debug.py", "telemetry.py", "types.py"])
def test_type_checkers_and_first_use_import_the_same_names(file):
    tree = ast.parse((PACKAGE / file).read_text())
    (branch,) = (node for node in tree.body if isinstance(node, ast.If))
    table = ast.literal_eval(branch.orelse[0].value.args[1])
    assert names_of(branch.body) == {module: set(names.split()) for module, names in table.items()}


@pytest.mark.parametrize("module", MODULES[:-1], ids=lambda module: module.__name__)
def test_unknown_name_is_an_attribute_error_with_a_hint(module):
    name = module.__all__[-1]
    with pytest.raises(AttributeError, match=f"^module '{module.__name__}' has no attribute"):
        getattr(module, name + "x")
    result = subprocess.run(
        [sys.executable, "-c", f"import {module.__name__}; {module.__name__}.{name}x"],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    hint = f"Did you mean: '{name}'?"
    if sys.version_info >= (3, 15):
        hint = f"Did you mean '.{name}' instead of '.{name}x'?"
    assert hint in result.stderr


def test_first_use_by_many_threads_at_once_gives_one_object():
    code = """
import threading, memrt
start, found = threading.Barrier(16), []
def use():
    start.wait()
    found.append((memrt.debug.growth, memrt.types.Holders, memrt.Policy, memrt.holders))
threads = [threading.Thread(target=use) for _ in range(16)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(len(found), len(set(found)))
"""
    assert run_python(code) == "16 1\n"


def test_annotations_resolve_before_a_program_names_the_types():
    code = """
import typing, numpy as np, memrt
for thing in (memrt.stats(), memrt.alignment(np.ones(3)), memrt.debug.growth(list),
              memrt.debug.options()[0]):
    print(type(thing).__module__, *typing.get_type_hints(type(thing)))
"""
    shown = run_python(code).splitlines()
    assert [line.split()[:2] for line in shown] == [
        ["memrt.types", first] for first in ("alloc", "dtype", "places", "name")
    ]


@needs_gil
def test_annotations_of_holders_resolve_before_first_use():
    code = """
import typing, memrt
print(*typing.get_type_hints(type(memrt.holders(memrt.zeros(3)))))
"""
    assert run_python(code).split()[0] == "nbytes"


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
    variables = {node.target.id for node in tree.body if isinstance(node, ast.AnnAssign)}
    present = {n for n in dir(_memrt) if not n.startswith("_")}
    assert set(declared) | {n for n in variables if not n.startswith("_")} == present
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
    text = re.sub(r"\(\s+", "(", result.stdout)  # newer Pythons break long signatures
    for part in ("alloc(nbytes", "class Policy", "reference-counted", "refcount"):
        assert part in text


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
