"""Cython compiles the packaged declarations, and the compiler accepts each against the headers."""

from __future__ import annotations

import re
import sys
import sysconfig
from pathlib import Path

import memrt
import numpy as np
from consumers import run

PACKAGE = Path(memrt.get_include()).parent
NAMES = re.compile(r"^    (?:ctypedef|cdef) struct (\w+):\n(.*?)^$", re.DOTALL | re.MULTILINE)
MEMBER = re.compile(r"^        .*?(?:\(\*)?(\w+)(?:\[\d+\]|\)\(.*)?$", re.MULTILINE)


def structs(text: str) -> dict[str, list[str]]:
    """Return the complete structs of the declarations with their members."""
    found = {name: MEMBER.findall(body) for name, body in NAMES.findall(text)}
    return {name: members for name, members in found.items() if members != ["pass"]}


def test_each_declared_name_exists_in_the_headers(tmp_path):
    text = (PACKAGE / "__init__.pxd").read_text(encoding="utf-8")
    text = re.sub(r",\n +", ", ", text)
    constants = re.findall(r"^    const uint64_t (\w+)$", text, re.MULTILINE)
    values = re.findall(r"^        (MEMRT_\w+)$", text, re.MULTILINE)
    assert len(structs(text)["memrt_api_t"]) > 120
    assert len(constants) > 20
    assert len(values) > 20
    lines = ["from memrt cimport *", "from memrt.numpy cimport *", "def check():", "    total = 0"]
    for number, (name, members) in enumerate(structs(text).items()):
        lines += [f"    cdef {name} *p{number} = NULL"]
        lines += [f"    total += sizeof(p{number}.{member})" for member in members]
    lines += [f"    total += {name}" for name in [*constants, *values]]
    lines += ["    memrt_import()", "    return total"]
    source = tmp_path / "check.pyx"
    source.write_text("\n".join(lines) + "\n")
    run(sys.executable, "-m", "cython", "-3", "-Werror", source)
    folders = [memrt.get_include(), np.get_include(), sysconfig.get_path("include")]
    target = "-DNPY_TARGET_VERSION=NPY_1_22_API_VERSION"
    flags = [f"-I{folder}" for folder in folders]
    run("cc", "-fsyntax-only", "-Werror", target, *flags, source.with_suffix(".c"))
