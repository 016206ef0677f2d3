"""Out of memory anywhere under a jitted call is an exception, and the next call works.

Each case fails at each of its failure points, once or together with all later points. memrt must
keep references correct on the way into and out of compiled code. When a callee raises, Numba loses
the memory held by the calling jitted function, also on Numba's own runtime. The field
`lost_by_numba` marks the cases that show these losses.
"""

from __future__ import annotations

import gc
import itertools
import sys
from collections.abc import Callable
from dataclasses import dataclass

import memrt
import numpy as np
import points
import pytest
from memrt.testing import fail_allocations
from numba import njit, types
from numba.core.runtime import _nrt_python as nrt
from numba.experimental import jitclass, structref
from numba.typed import Dict, List

ARRAY = np.arange(6.0)
FLOATS = np.arange(12.0).reshape(3, 4)
RANDOM = np.random.default_rng(1)
REFLECTED = [1, 2]

OUT = MemoryError
UNBOXING = TypeError  # Numba reports a failed unboxing of an array as "can't unbox array"
UNSAID = SystemError  # Numba ignores the error of its runtime; the MemoryError is the cause


@njit
def new_array(n):
    return np.ones(n)


@njit
def array_in(a):
    return a.sum()


@njit
def array_through(a):
    return a


@njit
def view_out(a):
    return a[1:, ::2]


@njit
def two_out(a, b):
    return a[1:], b[2:]


@njit
def two_new(n):
    return np.ones(n), np.zeros(n)


@njit
def temporary(a):
    return (a + 1).sum()


@njit
def grow_list(n):
    out = []
    for i in range(n):
        out.append(i * 1.0)
    return out


@njit
def grow_set(n):
    out = set()
    for i in range(n):
        out.add(i)
    return out


@njit
def grow_typed_list(n):
    out = List()
    for i in range(n):
        out.append(i)
    return out


@njit
def grow_dict(n):
    out = Dict.empty(types.int64, types.int64)
    for i in range(n):
        out[i] = i
    return out


@njit
def concatenate(s, n):
    return s * n


@njit
def text_through(s):
    return s


@njit
def reflected(values):
    values.append(3)
    return len(values)


@njit
def from_buffer(b):
    return b[0]


@njit
def produce(n):
    for i in range(n):
        yield np.full(3, i)


@njit
def draw(generator):
    return generator.random()


@jitclass([("items", types.float64[:])])
class Holder:
    def __init__(self, n):
        self.items = np.ones(n)


@njit
def make_holder(n):
    return Holder(n)


@structref.register
class PairType(types.StructRef):
    def preprocess_fields(self, fields):
        return tuple((name, types.unliteral(kind)) for name, kind in fields)


class Pair(structref.StructRefProxy):
    def __new__(cls, a, b):
        return structref.StructRefProxy.__new__(cls, a, b)

    @property
    def total(self):
        return total_of(self)


@njit
def total_of(pair):
    return pair.a + pair.b.sum()


structref.define_proxy(Pair, PairType, ["a", "b"])


@njit
def make_pair(b):
    return Pair(1.0, b)


def reflect_a_list() -> int:
    values = list(REFLECTED)
    return reflected(values)


def consume() -> list[float]:
    return [part.sum() for part in produce(3)]


@dataclass(frozen=True)
class Case:
    """A call, the exceptions of its failure points, and whether Numba loses memory."""

    name: str
    call: Callable[[], object]
    errors: tuple[type[Exception], ...]
    lost_by_numba: bool = False
    inputs: tuple[object, ...] = ()


CASES = (
    Case("new array", lambda: new_array(10), (OUT,)),
    Case("array in", lambda: array_in(ARRAY), (UNBOXING,), inputs=(ARRAY,)),
    Case("array through", lambda: array_through(ARRAY), (UNBOXING,), inputs=(ARRAY,)),
    Case("view in and out", lambda: view_out(FLOATS[:, ::-1]), (UNBOXING,), inputs=(FLOATS,)),
    Case("two in and out", lambda: two_out(ARRAY, FLOATS), (UNBOXING,), inputs=(ARRAY, FLOATS)),
    Case("two new arrays", lambda: two_new(4), (OUT,), lost_by_numba=True),
    Case("temporary", lambda: temporary(ARRAY), (UNBOXING, OUT), True, (ARRAY,)),
    Case("list", lambda: grow_list(20), (OUT,), lost_by_numba=True),
    Case("set", lambda: grow_set(100), (OUT,), lost_by_numba=True),
    Case("typed list", lambda: grow_typed_list(5), (OUT,)),
    Case("typed dict", lambda: grow_dict(50), (OUT,)),
    Case("text in and out", lambda: text_through("a" * 20), (OUT,)),
    Case("text", lambda: concatenate("abc", 5), (OUT,), lost_by_numba=True),
    Case("reflected list", reflect_a_list, (UNSAID, OUT)),
    Case("buffer", lambda: from_buffer(memoryview(b"abc")), (UNSAID,)),
    Case("generator", consume, (OUT,)),
    Case("random generator", lambda: draw(RANDOM), (UNSAID,), inputs=(RANDOM,)),
    Case("jitclass", lambda: Holder(5).items, (OUT,), lost_by_numba=True),
    Case("jitclass in compiled code", lambda: make_holder(5), (OUT,), lost_by_numba=True),
    Case("structref", lambda: make_pair(ARRAY).total, (UNBOXING, OUT), True, (ARRAY,)),
)


def held() -> tuple[int, int]:
    """Return the numbers of live blocks and MemInfos."""
    gc.collect()
    stats = memrt.stats()
    return stats.alloc - stats.free, stats.mi_alloc - stats.mi_free


def attempt(call: Callable[[], object]) -> type[Exception] | None:
    """Return the type of the exception, or None. Keep neither the result nor the exception."""
    try:
        call()
    except Exception as error:
        assert_says_why(error)
        return type(error)
    return None


def assert_says_why(error: Exception) -> None:
    """Check that the cause of a SystemError, if any, is a MemoryError.

    The message of a TypeError must name the failed unboxing.
    """
    if isinstance(error, SystemError) and error.__cause__ is not None:
        assert isinstance(error.__cause__, MemoryError)
    elif isinstance(error, TypeError):
        assert "can't unbox" in str(error)


@dataclass
class Findings:
    """The outcome of all failure points of a case."""

    errors: set[type[Exception]]
    lost: int
    points: int


def meet_every_failure(case: Case, every: int | None) -> Findings:
    case.call()
    findings = Findings(set(), 0, 0)
    for nth in itertools.count(1):
        before = held()
        references = [sys.getrefcount(thing) for thing in case.inputs]
        with fail_allocations(nth, every) as plan:
            error = attempt(case.call)
        if plan.points < nth:
            assert error is None
            findings.points = plan.points
            return findings
        assert error is not None, f"failure {nth} raised no error"
        findings.errors.add(error)
        after = held()
        kept = [sys.getrefcount(thing) for thing in case.inputs]
        if case.lost_by_numba:
            findings.lost += after != before
        else:
            assert (after, kept) == (before, references), f"after failure {nth}"
        case.call()
    raise AssertionError("unreachable")


@pytest.mark.numba_leaks
@pytest.mark.filterwarnings("ignore::numba.core.errors.NumbaPendingDeprecationWarning")
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
@pytest.mark.parametrize("every", [None, 1], ids=["once", "from there on"])
def test_every_failure_raises_and_the_next_call_works(case, every):
    findings = meet_every_failure(case, every)
    points.note(f"numba: {case.name}", "memrt", findings.points)
    assert findings.points > 0
    assert findings.errors == set(case.errors)
    assert (findings.lost > 0) == case.lost_by_numba


def test_failed_boxing_releases_the_array(on_memrt, call_without_memory):
    """Allocations of the Python object over a MemInfo fail through Python's own allocator."""
    new_array(3)
    before = held()
    raised = {call_without_memory(lambda: new_array(3), number) for number in range(60)}
    assert raised == {None, MemoryError}
    assert held() == before
    assert type(new_array(3).base) is nrt._MemInfo
