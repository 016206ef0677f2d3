"""The text for cffi declares the table as the library has it, and calls go through."""

from __future__ import annotations

from pathlib import Path

import cffi
import memrt
import pytest
from memrt import _memrt


@pytest.fixture(scope="module")
def ffi() -> cffi.FFI:
    found = cffi.FFI()
    found.cdef(Path(memrt.get_include(), "memrt", "memrt.cdef").read_text())
    return found


@pytest.fixture(scope="module")
def api(ffi):
    library = ffi.dlopen(memrt.get_library())
    return library.memrt_get_api(library.MEMRT_ABI_MAJOR, ffi.NULL)


def test_table_has_the_size_and_version_of_the_library(ffi, api):
    assert ffi.sizeof("memrt_api_t") == api.struct_size == _memrt.features()["table_bytes"]
    assert ffi.string(api.version).decode() == memrt.__version__
    assert ffi.offsetof("memrt_meminfo_t", "data") == 24
    assert ffi.sizeof("memrt_meminfo_t") == 64


def test_buffer_is_counted_until_its_release(ffi, api):
    before = memrt.stats()
    mi = api.allocate(1000)
    ffi.buffer(api.get_data(mi), 5)[:] = b"hello"
    assert (memrt.stats() - before).live == api.size(mi) == mi.size == 1000
    assert mi.refct == api.refcount(mi) == 1
    api.release(mi)
    assert (memrt.stats() - before).live == 0


def test_destructor_runs_as_a_callback_of_cffi(ffi, api):
    seen = []

    @ffi.callback("memrt_dtor_fn")
    def destroy(data, size, info):
        seen.append((int(ffi.cast("uintptr_t", data)), size, ffi.from_handle(info)))

    handle = ffi.new_handle("context")
    options = ffi.new("memrt_new_options_t *", {"struct_size": ffi.sizeof("memrt_new_options_t")})
    options.dtor, options.dtor_info = destroy, handle
    out = ffi.new("memrt_meminfo_t **")
    assert api.meminfo_new(64, options, out) == 0
    address = int(ffi.cast("uintptr_t", out[0].data))
    api.release(out[0])
    assert seen == [(address, 64, "context")]
