"""The declarations for cffi and Cython equal the headers, and a stale declaration is found."""

from __future__ import annotations

import declarations
import pytest


@pytest.mark.parametrize("name", declarations.WRITERS)
def test_declarations_equal_those_of_the_headers(name):
    text = declarations.WRITERS[name](declarations.ROOT)
    assert (declarations.ROOT / name).read_text(encoding="utf-8") == text


def test_stale_declarations_are_found(monkeypatch, capsys):
    monkeypatch.setattr(declarations, "WRITERS", {declarations.CFFI: lambda root: "other"})
    assert declarations.main([]) == 1
    assert "memrt.cdef differs from the headers" in capsys.readouterr().out


def test_each_kind_of_declaration_is_written_for_cython():
    text = declarations.cython_text(declarations.ROOT)
    for part in (
        "    ctypedef void (*memrt_release_fn)(memrt_meminfo_t *mi) noexcept nogil\n",
        "        void *(*malloc)(size_t size, void *opaque_data) noexcept nogil\n",
        "        char name[64]\n",
        "    ctypedef struct memrt_policy_t:\n        pass\n",
        "    cdef struct DLManagedTensor:\n        pass\n",
        "        MEMRT_KIND_ADOPTED\n",
        "memrt_function_t *const **slot",
    ):
        assert part in text
    assert "memrt_get_api" not in text  # a function of the library, which extensions do not link
