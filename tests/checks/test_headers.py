"""Public headers stand alone, in C and in C++; a header that does not is found."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import headers
import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("language", ["c", "c++"])
@pytest.mark.parametrize("header", list(headers.public_headers(ROOT)), ids=lambda path: path.name)
def test_a_public_header_compiles_alone_in(header, language):
    assert headers.compile_alone(ROOT, header, language) == ""


@pytest.mark.parametrize(
    "text",
    [
        "static inline size_t f(void){return 1;}",
        "#if MEMRT_NOT_DEFINED\n#endif",
        "static int twice = 0;",
    ],
    ids=["missing include", "undefined macro", "no include guard"],
)
def test_a_header_that_leans_on_others_is_found(tmp_path, text):
    header = tmp_path / "api/include/memrt/planted.h"
    header.parent.mkdir(parents=True)
    header.write_text(text)
    assert "planted.h as c" in headers.violations(tmp_path)[0]


def test_a_header_that_is_no_cplusplus_is_found(tmp_path):
    header = tmp_path / "api/include/memrt/planted.h"
    header.parent.mkdir(parents=True)
    header.write_text("#pragma once\nvoid f(int class);\n")
    assert len(headers.violations(tmp_path)) == 1


def test_dlpacks_header_is_the_one_that_is_recorded():
    folder = ROOT / "api/include/memrt/dlpack"
    record = (folder / "README.md").read_text(encoding="utf-8")
    header = (folder / "dlpack.h").read_bytes()
    assert hashlib.sha256(header).hexdigest() in record
    version = re.findall(rb"#define DLPACK_M\w+_VERSION (\d+)", header)
    assert f"| version | {b'.'.join(version).decode()} |" in record
