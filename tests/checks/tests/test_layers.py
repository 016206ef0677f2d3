"""Test the layer check with seeded violations, and on the project."""

from __future__ import annotations

from pathlib import Path

import layers
import pytest

ROOT = Path(__file__).resolve().parents[3]


def plant(root: Path, **files: str) -> list[str]:
    """Write C files into a source tree and return the violations.

    In a file name, `__` stands for a slash, and a final `_c` or `_h` for the suffix.
    """
    for name, text in files.items():
        path = root / name.replace("__", "/").replace("_h", ".h").replace("_c", ".c")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return layers.violations(root)


def test_project_keeps_the_order_of_layers():
    assert layers.violations(ROOT) == []


def test_every_layer_of_the_check_has_files():
    found = {layers.layer_of(source).prefix for source in layers.sources(ROOT)}
    assert found == {layer.prefix for layer in layers.LAYERS}


def test_include_of_a_lower_layer_passes(tmp_path):
    files = {"runtime__base__a_h": "", "runtime__alloc__b_c": '#include "runtime/base/a.h"\n'}
    assert plant(tmp_path, **files) == []


@pytest.mark.parametrize(
    ("upper", "lower"),
    [
        ("runtime__alloc__a_h", "runtime__base__b_c"),
        ("runtime__meminfo__a_h", "runtime__alloc__b_c"),
        ("runtime__a_h", "runtime__meminfo__b_c"),
        ("api__a_h", "runtime__b_c"),
        ("runtime__debug__a_h", "runtime__stats__b_c"),
        ("runtime__base__a_h", "bindings__src__b_c"),
        ("runtime__base__a_h", "api__include__memrt__b_h"),
        ("bindings__include__memrt__a_h", "api__b_c"),
        ("bindings__src__core__a_h", "bindings__src__support__b_c"),
        ("bindings__src__types__a_h", "bindings__src__interop__b_c"),
        ("bindings__src__numba__a_h", "bindings__src__observe__b_c"),
        ("bindings__src__a_h", "bindings__src__types__b_c"),
    ],
)
def test_include_of_an_upper_or_side_layer_is_found(tmp_path, upper, lower):
    name = upper.replace("__", "/").replace("_h", ".h")
    found = plant(tmp_path, **{upper: "", lower: f'\n#  include "{name}"\n'})
    assert len(found) == 1
    assert f":2: {name} is not below" in found[0]


def test_bindings_include_of_a_public_header_passes(tmp_path):
    files = {"api__include__memrt__a_h": "", "bindings__src__b_c": "#include <memrt/a.h>\n"}
    assert plant(tmp_path, **files) == []


def test_bindings_include_relative_to_their_folder_passes(tmp_path):
    files = {"bindings__src__core__a_h": "", "bindings__src__types__b_c": '#include "core/a.h"\n'}
    assert plant(tmp_path, **files) == []


def test_relative_include_of_an_upper_layer_is_found(tmp_path):
    files = {"runtime__alloc__a_h": "", "runtime__base__b_c": '#include "../alloc/a.h"\n'}
    assert len(plant(tmp_path, **files)) == 1


def test_include_of_a_missing_file_is_found(tmp_path):
    found = plant(tmp_path, runtime__a_c='#include "runtime/base/gone.h"\n')
    assert found == ["runtime/a.c:1: runtime/base/gone.h does not exist"]


def test_include_of_a_source_file_is_found(tmp_path):
    found = plant(tmp_path, runtime__a_c='#include "b.c"\n', runtime__b_c="")
    assert found == ["runtime/a.c:1: b.c is a source file, not a header"]


@pytest.mark.parametrize("header", ["pthread.h", "stdatomic.h", "Python.h"])
def test_foreign_include_in_a_public_header_is_found(tmp_path, header):
    found = plant(tmp_path, api__include__memrt__a_h=f"#include <{header}>\n")
    assert len(found) == 1


@pytest.mark.parametrize(
    ("suffix", "header", "violations"),
    [
        ("hpp", "vector", 0),
        ("h", "vector", 1),
        ("hpp", "boost/any.hpp", 1),
        ("hpp", "pthread.h", 1),
    ],
)
def test_only_headers_of_cplusplus_include_its_library(tmp_path, suffix, header, violations):
    path = tmp_path / "api/include/memrt" / f"a.{suffix}"
    path.parent.mkdir(parents=True)
    path.write_text(f"#include <{header}>\n")
    assert len(layers.violations(tmp_path)) == violations


@pytest.mark.parametrize("header", ["stdatomic.h", "sys/mman.h", "Python.h", "numpy/arrayobject.h"])
def test_restricted_include_outside_its_files_is_found(tmp_path, header):
    found = plant(tmp_path, runtime__alloc__a_c=f"#include <{header}>\n")
    assert found[0].startswith(f"runtime/alloc/a.c:1: {header} belongs behind ")


def test_folder_without_sources_is_refused(tmp_path, capsys):
    assert layers.main(["layers.py", str(tmp_path)]) == 2
    assert "repository's root" in capsys.readouterr().err
