"""Write a page for each public header. Doxygen reads the headers, and Breathe shows the results."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

FOLDERS = ("api/include", "bindings/include")
LEFT_OUT = ("memrt/dlpack/", "memrt/numpy/")  # DLPack's own header; bodies of inline functions
INDEX = """\
C reference
===========

A C program includes :doc:`memrt/memrt.h <memrt_memrt>`, and an extension module of Python
:doc:`memrt/import.h <memrt_import>`. C++17 adds :doc:`memrt/memrt.hpp <memrt_memrt_hpp>`.

.. toctree::
   :maxdepth: 1

"""
PAGE = """\
{title}
{line}

.. doxygenfile:: {file}
"""
CPP_PAGE = """\
memrt/memrt.hpp
===============

The classes and functions for C++17. ``memrt/memrt.hpp`` includes all of them; the parts are
``memrt/meminfo.hpp`` and ``memrt/array.hpp``.

.. doxygenclass:: memrt::ref
   :members:

.. doxygenclass:: memrt::array
   :members:

.. doxygenclass:: memrt::out_of_memory
   :members:

.. doxygennamespace:: memrt
   :content-only:
"""


def headers(root: Path) -> list[str]:
    """Return the installed headers by the names that programs include."""
    found = [
        path.relative_to(root / folder).as_posix()
        for folder in FOLDERS
        for path in (root / folder).rglob("*.h")
    ]
    return sorted(name for name in found if not name.startswith(LEFT_OUT))


def run_doxygen(root: Path, out: Path) -> None:
    """Write Doxygen's XML into a folder. A warning of Doxygen is an error."""
    out.mkdir(parents=True, exist_ok=True)
    here = Path(__file__).resolve().parent
    settings = (here / "Doxyfile").read_text(encoding="utf-8")
    settings += f'OUTPUT_DIRECTORY = "{out}"\n'
    settings += f'INPUT_FILTER = "{sys.executable} {here / "header_filter.py"}"\n'
    subprocess.run(["doxygen", "-"], input=settings, text=True, cwd=root, check=True)


def write(root: Path, pages: Path, out: Path) -> None:
    """Write the pages of all headers, and Doxygen's XML into `out`."""
    run_doxygen(root, out)
    shutil.rmtree(pages, ignore_errors=True)
    pages.mkdir(parents=True)
    names = headers(root)
    stems = [name.removesuffix(".h").replace("/", "_") for name in names]
    lines = "".join(f"   {stem}\n" for stem in [*stems, "memrt_memrt_hpp"])
    (pages / "index.rst").write_text(INDEX + lines, encoding="utf-8")
    for name, stem in zip(names, stems, strict=True):
        text = PAGE.format(title=name, line="=" * len(name), file=Path(name).name)
        (pages / f"{stem}.rst").write_text(text, encoding="utf-8")
    (pages / "memrt_memrt_hpp.rst").write_text(CPP_PAGE, encoding="utf-8")
