"""Compiled functions that call each other, each loaded at a different time."""

from __future__ import annotations

import ctypes
import threading
from concurrent.futures import ThreadPoolExecutor

import memrt
import pytest
from gil import needs_safe_lists
from memrt import _memrt


def table() -> ctypes.c_void_p:
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return ctypes.c_void_p(pointer(_memrt.api, b"memrt._memrt.api"))


class Loaded:
    """A loaded library with its function, callable with the GIL and without."""

    def __init__(self, path, name: str) -> None:
        self._library = ctypes.PyDLL(str(path))
        assert self._library.load(table()) == 0
        self.with_gil = getattr(self._library, name)
        self.without_gil = getattr(ctypes.CDLL(str(path)), name)

    def unload(self) -> None:
        assert self._library.unload(table()) == 0


@pytest.fixture
def load(compile_library):
    """Return a function that compiles and loads the library of either function."""
    loaded = []

    def load_one(name: str, other: str, at_zero: int) -> Loaded:
        flags = [f"-DSELF={name}", f"-DOTHER={other}", f"-DAT_ZERO={at_zero}"]
        path = compile_library("parity.c", *flags)
        loaded.append(Loaded(path.rename(path.with_name(f"{name}.so")), name))
        return loaded[-1]

    yield load_one
    for each in loaded:
        each.unload()


def test_call_before_definition_raises_with_symbol_name(load):
    even = load("is_even", "is_odd", 1)
    assert even.with_gil(0) == 1
    assert "is_odd" in memrt.debug.unresolved_symbols()
    with pytest.raises(RuntimeError, match="called the undefined symbol is_odd"):
        even.with_gil(1)
    memrt.debug.check_symbols()


@needs_safe_lists
def test_list_of_symbols_raises_memory_error(load, call_without_memory):
    load("is_even", "is_odd", 1)
    list_symbols = memrt.debug.unresolved_symbols
    raised = [call_without_memory(list_symbols, number) for number in range(10)]
    assert set(raised) == {MemoryError, None}
    assert "is_odd" in list_symbols()


def test_call_without_gil_defers_error_to_check_symbols(load):
    even = load("is_even", "is_odd", 1)
    assert even.without_gil(1) == -1
    with pytest.raises(RuntimeError, match="called the undefined symbol is_odd"):
        memrt.debug.check_symbols()
    memrt.debug.check_symbols()


def test_symbol_error_belongs_to_calling_thread(load):
    even = load("is_even", "is_odd", 1)
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(even.without_gil, 1).result() == -1
        assert memrt.debug.check_symbols() is None
        with pytest.raises(RuntimeError, match="is_odd"):
            pool.submit(memrt.debug.check_symbols).result()


def test_mutually_calling_functions_work_when_both_loaded(load):
    even = load("is_even", "is_odd", 1)
    odd = load("is_odd", "is_even", 0)
    assert not {"is_even", "is_odd"} & set(memrt.debug.unresolved_symbols())
    assert [even.with_gil(n) for n in range(6)] == [1, 0, 1, 0, 1, 0]
    assert [odd.with_gil(n) for n in range(6)] == [0, 1, 0, 1, 0, 1]
    odd.unload()
    with pytest.raises(RuntimeError, match="is_odd"):
        even.with_gil(5)


def test_calls_during_load_give_error_or_result(load):
    even = load("is_even", "is_odd", 1)
    begun = threading.Barrier(4)

    def ask() -> set[int]:
        begun.wait()
        answers = set()
        while 1 not in answers:
            answer = even.without_gil(100)
            answers.add(answer)
            if answer == -1:
                with pytest.raises(RuntimeError, match="is_odd"):
                    memrt.debug.check_symbols()
            else:
                memrt.debug.check_symbols()
        return answers

    with ThreadPoolExecutor(3) as pool:
        asked = [pool.submit(ask) for _ in range(3)]
        begun.wait()
        load("is_odd", "is_even", 0)
        assert all(each.result() <= {-1, 1} for each in asked)
