"""Test that all public headers compile alone, in C and C++, and that bad headers are found."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import headers
import pytest

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize(
    ("header", "language"),
    [
        pytest.param(header, language, id=f"{header.name}-{language}")
        for header in headers.public_headers(ROOT)
        for language in headers.LANGUAGES[header.suffix]
    ],
)
def test_public_header_compiles_alone(header, language):
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
def test_header_that_is_not_self_contained_is_found(tmp_path, text):
    header = tmp_path / "api/include/memrt/planted.h"
    header.parent.mkdir(parents=True)
    header.write_text(text)
    assert "planted.h as c99" in headers.violations(tmp_path)[0]


def test_header_that_is_invalid_cplusplus_is_found(tmp_path):
    header = tmp_path / "api/include/memrt/planted.h"
    header.parent.mkdir(parents=True)
    header.write_text("#pragma once\nvoid f(int class);\n")
    assert len(headers.violations(tmp_path)) == 1


def test_header_of_cplusplus_with_a_missing_include_is_found(tmp_path):
    header = tmp_path / "api/include/memrt/planted.hpp"
    header.parent.mkdir(parents=True)
    header.write_text("#pragma once\ninline std::size_t f() { return 1; }\n")
    assert [text.partition(":")[0] for text in headers.violations(tmp_path)] == [
        "api/include/memrt/planted.hpp as c++17",
        "api/include/memrt/planted.hpp as c++20",
    ]


def test_dlpack_header_matches_its_record():
    folder = ROOT / "api/include/memrt/dlpack"
    record = (folder / "README.md").read_text(encoding="utf-8")
    header = (folder / "dlpack.h").read_bytes()
    assert hashlib.sha256(header).hexdigest() in record
    version = re.findall(rb"#define DLPACK_M\w+_VERSION (\d+)", header)
    assert f"| version | {b'.'.join(version).decode()} |" in record
