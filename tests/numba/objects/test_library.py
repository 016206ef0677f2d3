"""libmemrt_nrt supplies the functions that compiled code of Numba calls by name."""

from __future__ import annotations

import ctypes
import math
from ctypes import c_double, c_float, c_int, c_int64, c_size_t, c_uint, c_void_p

import memrt
import nrt_names
import numpy as np
import pytest
from runtimes import DTOR, word

HUGE = 2**62

# Functions that create a MemInfo: types of the arguments, and blocks per MemInfo.
CREATORS = [
    ("alloc", (c_size_t,), 1),
    ("alloc_safe", (c_size_t,), 1),
    ("alloc_aligned", (c_size_t, c_uint), 1),
    ("alloc_safe_aligned", (c_size_t, c_uint), 1),
    ("alloc_safe_aligned_external", (c_size_t, c_uint, c_void_p), 1),
    ("alloc_dtor", (c_size_t, c_void_p), 1),
    ("alloc_dtor_safe", (c_size_t, c_void_p), 1),
    ("new_varsize", (c_size_t,), 2),
    ("new_varsize_dtor", (c_size_t, c_void_p), 2),
]


def create(nrt, name, types, size):
    """Call a creator with alignment 64, and with no destructor or external allocator."""
    function = getattr(nrt, f"NRT_MemInfo_{name}")
    function.restype, function.argtypes = c_void_p, types
    rest = [64 if each is c_uint else None for each in types[1:]]
    return function(size, *rest)


def test_library_supplies_every_name_of_numba(numba_folder):
    assert nrt_names.missing(numba_folder) == set()


@pytest.mark.parametrize(("name", "types", "blocks"), CREATORS)
def test_creator_counts_one_meminfo(nrt, name, types, blocks):
    before = memrt.stats()
    mi = create(nrt, name, types, 1000)
    after = memrt.stats()
    assert (word(mi, 0), word(mi, 4)) == (1, 1000)
    assert word(mi, 3) % 64 == 0
    assert (after.mi_alloc - before.mi_alloc, after.alloc - before.alloc) == (1, blocks)
    nrt.NRT_MemInfo_release(c_void_p(mi))


@pytest.mark.parametrize(("name", "types", "blocks"), CREATORS)
def test_creator_without_memory_returns_null(nrt, name, types, blocks):
    assert create(nrt, name, types, HUGE) is None


def test_library_uses_the_table_of_this_process(nrt, on_memrt):
    nrt.NRT_get_api.restype = c_void_p
    assert nrt.NRT_get_api() == on_memrt.get_api()


def test_destructor_gets_data_size_and_null(nrt):
    calls = []
    dtor = DTOR(lambda *arguments: calls.append(arguments))
    nrt.NRT_MemInfo_alloc_dtor.restype = c_void_p
    mi = nrt.NRT_MemInfo_alloc_dtor(c_size_t(8), dtor)
    data = word(mi, 3)
    c_size_t.from_address(mi).value = 0  # compiled code counts the references itself
    nrt.NRT_MemInfo_call_dtor(c_void_p(mi))
    assert calls == [(data, 8, None)]


def test_varsize_data_is_resized_and_freed(nrt):
    for name in ("realloc", "alloc"):
        function = getattr(nrt, f"NRT_MemInfo_varsize_{name}")
        function.restype, function.argtypes = c_void_p, (c_void_p, c_size_t)
    nrt.NRT_MemInfo_data.restype, nrt.NRT_MemInfo_data.argtypes = c_void_p, (c_void_p,)
    mi = create(nrt, "new_varsize", (c_size_t,), 8)
    data = nrt.NRT_MemInfo_varsize_realloc(mi, 100_000)
    assert nrt.NRT_MemInfo_data(mi) == data
    nrt.NRT_MemInfo_varsize_free(c_void_p(mi), c_void_p(data))
    assert nrt.NRT_MemInfo_data(mi) is None
    assert nrt.NRT_MemInfo_varsize_alloc(mi, 16) == nrt.NRT_MemInfo_data(mi)
    nrt.NRT_MemInfo_release(c_void_p(mi))


def test_allocate_and_free_are_counted(nrt):
    nrt.NRT_Allocate.restype, nrt.NRT_Allocate.argtypes = c_void_p, (c_size_t,)
    before = memrt.stats().alloc
    data = nrt.NRT_Allocate(100)
    assert memrt.stats().alloc == before + 1
    nrt.NRT_Free(c_void_p(data))
    nrt.NRT_Free(None)


# --- Mathematics ---

INFINITY, NAN = math.inf, math.nan


@pytest.mark.parametrize(("suffix", "kind"), [("", c_double), ("f", c_float)])
@pytest.mark.parametrize("x", [0.0, -0.0, 1.0, -10.5, INFINITY, -INFINITY, NAN])
def test_frexp_and_ldexp_match_python(nrt, suffix, kind, x):
    frexp, ldexp = getattr(nrt, f"numba_frexp{suffix}"), getattr(nrt, f"numba_ldexp{suffix}")
    frexp.restype, frexp.argtypes = kind, (kind, c_void_p)
    ldexp.restype, ldexp.argtypes = kind, (kind, c_int)
    exponent = c_int(7)
    part = frexp(x, ctypes.addressof(exponent))
    assert str((part, exponent.value)) == str(math.frexp(x))
    assert str(ldexp(part, exponent.value)) == str(x)


@pytest.mark.parametrize(("suffix", "kind"), [("", c_double), ("f", c_float)])
def test_gamma_and_nextafter_match_the_c_library(nrt, suffix, kind):
    gamma, nextafter = (
        getattr(nrt, f"numba_gamma{suffix}"),
        getattr(nrt, f"numba_nextafter{suffix}"),
    )
    gamma.restype, gamma.argtypes = kind, (kind,)
    nextafter.restype, nextafter.argtypes = kind, (kind, kind)
    number = np.float64 if kind is c_double else np.float32
    assert gamma(5.0) == 24.0
    assert nextafter(1.0, 2.0) == np.nextafter(number(1), number(2))


@pytest.mark.parametrize(("suffix", "kind"), [("", c_double), ("f", c_float)])
@pytest.mark.parametrize(
    ("base", "exponent", "expected"),
    [
        (1 + 2j, 2 + 0j, -3 + 4j),
        (2 + 0j, 0j, 1 + 0j),
        (0j, 0j, 1 + 0j),
        (0j, 2 + 0j, 0j),
        (0j, -1 + 0j, complex(NAN, NAN)),
        (0j, 1j, complex(NAN, NAN)),
    ],
)
def test_complex_power_matches_numba(nrt, suffix, kind, base, exponent, expected):
    pair = kind * 2
    out = pair()
    getattr(nrt, f"numba_cpow{suffix}")(pair(base.real, base.imag),
                                        pair(exponent.real, exponent.imag), out)  # fmt: skip
    assert complex(*out) == pytest.approx(expected, rel=1e-6, nan_ok=True)


# --- Reshape without a copy ---

SHAPES = [
    (24,),
    (4, 6),
    (2, 3, 4),
    (2, 12),
    (1, 24),
    (24, 1),
    (2, 2, 2, 3),
    (3, 1, 8),
    (1,),
    (0,),
    (0, 3),
]


def views(shape):
    """Yield arrays of a shape: contiguous in both orders, with steps, and with a reversed axis."""
    yield np.empty(shape)
    yield np.empty(shape, order="F")
    double = tuple(2 * each for each in shape)
    yield np.empty(double)[tuple(slice(None, None, 2) for _ in shape)]
    yield np.empty((*shape[:-1], 2 * shape[-1]))[..., ::2]
    yield np.empty(shape)[::-1]
    yield np.empty(shape).T


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("new_shape", SHAPES)
def test_reshape_finds_the_strides_of_numpy(nrt, order, shape, new_shape):
    for view in views(shape):
        strides = (c_int64 * len(new_shape))()
        fits = nrt.numba_attempt_nocopy_reshape(
            c_int64(view.ndim), (c_int64 * view.ndim)(*view.shape),
            (c_int64 * view.ndim)(*view.strides), c_int64(len(new_shape)),
            (c_int64 * len(new_shape))(*new_shape), strides, c_int64(8), c_int(order == "F"),
        )  # fmt: skip
        if view.size != math.prod(new_shape):
            assert not fits
            continue
        expected = view.reshape(new_shape, order=order)
        assert bool(fits) == (view.size == 0 or np.shares_memory(view, expected))
        if fits and view.size:
            for extent, found, stride in zip(new_shape, strides, expected.strides, strict=True):
                assert extent == 1 or found == stride
