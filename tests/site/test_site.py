"""The built site lists every public name of the package and of the headers. By ./dev docs --check.

The tests read the inventory that Sphinx writes, and the names are found without the site's scripts.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from pathlib import Path

import memrt
import pytest
from sphinx.util.inventory import InventoryFile

ROOT = Path(__file__).resolve().parents[2]
SITE = ROOT / "build" / "docs" / "html"
HEADERS = sorted(
    path
    for folder in ("api/include", "bindings/include")
    for path in (ROOT / folder).rglob("*.h")
    if "dlpack/" not in path.as_posix()
)
COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
BODY = re.compile(r"^\{\n.*?^\}", re.DOTALL | re.MULTILINE)  # of an inline function
STRUCT = re.compile(r"^(?:typedef )?struct \w+ \{\n(.*?)^\} ?(\w*)", re.DOTALL | re.MULTILINE)
ENUM = re.compile(r"^typedef enum \w+ \{\n(.*?)^\}", re.DOTALL | re.MULTILINE)
MEMBER = re.compile(
    r"\(\*(\w+)\)\(|^    [\w *]*?\b(\w+)(?:\[\w+\])?(?: MEMRT_MUST_CHECK)?;", re.MULTILINE
)
NAMES = (
    re.compile(r"^#define ((?!\w+_H\b|MEMRT_EXPORT|MEMRT_MUST_CHECK)\w+)", re.MULTILINE),
    re.compile(
        r"^typedef (?!struct \w+ \{|enum)[^;{]*?\b(memrt_\w+_(?:t|fn))\)?[;(]", re.MULTILINE
    ),
    re.compile(r"^\} (\w+);", re.MULTILINE),
    re.compile(r"^(?!typedef|#)[\w *]*?\b(memrt_\w+)\(", re.MULTILINE),
)

CPP_NAME = re.compile(  # classes, and functions outside of classes
    r"^(?:template <class T> )?class (\w+)"
    r"|^(?:inline|template <class T>) [^(\n]*?(?<![:\w])(\w+)\(",
    re.MULTILINE,
)


def inventory() -> dict[str, dict[str, object]]:
    """Return the entries of the site by type and name."""
    path = SITE / "objects.inv"
    assert path.exists(), "the site is not built: run ./dev docs --check"
    with path.open("rb") as file:
        return InventoryFile.load(file, "", lambda base, link: link)


FOUND = inventory()
IN_C = {name for kind, entries in FOUND.items() if kind.startswith("c:") for name in entries}
IN_CPP = {name for kind, entries in FOUND.items() if kind.startswith("cpp:") for name in entries}
IN_PYTHON = {name for kind, entries in FOUND.items() if kind.startswith("py:") for name in entries}


def public_modules() -> list[object]:
    names = [f"memrt.{name}" for _, name, _ in pkgutil.iter_modules(memrt.__path__)]
    modules = [importlib.import_module(name) for name in names if "._" not in name]
    return [memrt, *(module for module in modules if hasattr(module, "__all__"))]


PUBLIC = sorted(
    (f"{module.__name__}.{name}", getattr(module, name))
    for module in public_modules()
    for name in module.__all__
)


def code(header: Path) -> str:
    """Return a header without comments, bodies and private names."""
    text = BODY.sub(";", COMMENT.sub("", header.read_text(encoding="utf-8")))
    return re.sub(r"^.*\b(?:memrt|MEMRT)__\w+.*$", "", text, flags=re.MULTILINE)


def names_of(header: Path) -> set[str]:
    """Return the public names that a header declares, members as STRUCT.MEMBER."""
    text = code(header)
    found = {name for pattern in NAMES for name in pattern.findall(text)}
    for body in ENUM.findall(text):
        found |= set(re.findall(r"^    (\w+)", body, re.MULTILINE))
    for body, struct in STRUCT.findall(text):
        found |= {f"{struct}.{first or last}" for first, last in MEMBER.findall(body) if struct}
    return found


@pytest.mark.parametrize(("name", "thing"), PUBLIC, ids=[name for name, _ in PUBLIC])
def test_site_has_each_public_python_name(name, thing):
    assert name in IN_PYTHON
    assert inspect.getdoc(thing)


@pytest.mark.parametrize(
    ("name", "cls"), [(n, c) for n, c in PUBLIC if inspect.isclass(c)], ids=lambda each: str(each)
)
def test_site_has_each_attribute_of_public_classes(name, cls):
    members = {*vars(cls), *getattr(cls, "__annotations__", ()), *getattr(cls, "_fields", ())}
    missing = {f"{name}.{each}" for each in members if not each.startswith("_")} - IN_PYTHON
    assert missing == set()


@pytest.mark.parametrize("header", HEADERS, ids=lambda path: path.name)
def test_site_has_each_name_of_the_public_headers(header):
    assert names_of(header) - IN_C == set()


def test_site_has_the_names_of_the_headers_for_cplusplus():
    found = set()
    for header in (ROOT / "api/include/memrt").glob("*.hpp"):
        text = COMMENT.sub("", header.read_text(encoding="utf-8"))
        text = re.sub(r"^namespace detail\n.*?^}", "", text, flags=re.DOTALL | re.MULTILINE)
        found |= {first or last for first, last in CPP_NAME.findall(text)}
    assert {"ref", "array", "out_of_memory", "set_table", "allocate", "zeros"} <= found
    assert {f"memrt::{name}" for name in found} - IN_CPP == set()


def test_names_of_each_kind_are_found_in_the_headers():
    names = set().union(*map(names_of, HEADERS))
    kinds = ["MEMRT_NAME_MAX", "memrt_policy_t", "memrt_dtor_fn", "MEMRT_EINVAL", "memrt_import"]
    kinds += ["memrt_api_t.allocate", "memrt_api_t.version", "memrt_trace_event_t.block"]
    assert set(kinds) <= names
    assert len(names) > 400


def test_pages_of_c_keep_fields_and_groups():
    text = "".join(path.read_text(encoding="utf-8") for path in SITE.glob("reference/c/*.html"))
    for title in ("Ownership", "Threads", "Failure", "Memory that a forked process inherited"):
        assert title in text


@pytest.mark.parametrize("command", ["run", "report", "info", "stats", "top"])
def test_site_has_help_of_commands(command):
    assert f"command-{command}" in FOUND["std:label"]


def test_landing_page_leads_to_each_kind_of_reader():
    text = (SITE / "index.html").read_text(encoding="utf-8")
    for reader in ("NumPy programs", "use Numba", "write C", "maintain a library", "operate"):
        assert reader in text


def test_code_in_pages_links_to_the_reference():
    page = (SITE / "guide" / "leaks" / "holders.html").read_text(encoding="utf-8")
    assert 'href="../../reference/python/memrt.html#memrt.holders"' in page
