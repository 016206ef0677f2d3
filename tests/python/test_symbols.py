"""Functions of compiled code that call each other and are loaded one after the other."""

from __future__ import annotations

import ctypes
import threading
from concurrent.futures import ThreadPoolExecutor

import memrt
import pytest
from memrt import _memrt


def table() -> ctypes.c_void_p:
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return ctypes.c_void_p(pointer(_memrt.api, b"memrt._memrt.api"))


class Loaded:
    """One of the two libraries."""

    def __init__(self, path, name: str) -> None:
        self._library = ctypes.PyDLL(str(path))
        assert self._library.load(table()) == 0
        self.with_gil = getattr(self._library, name)
        self.without_gil = getattr(ctypes.CDLL(str(path)), name)

    def unload(self) -> None:
        assert self._library.unload(table()) == 0


@pytest.fixture
def load(compile_library):
    """Loads the library of one of the two functions."""
    loaded = []

    def load_one(name: str, other: str, at_zero: int) -> Loaded:
        flags = [f"-DSELF={name}", f"-DOTHER={other}", f"-DAT_ZERO={at_zero}"]
        path = compile_library("parity.c", *flags)
        loaded.append(Loaded(path.rename(path.with_name(f"{name}.so")), name))
        return loaded[-1]

    yield load_one
    for each in loaded:
        each.unload()


def test_what_is_called_before_it_is_loaded_raises_with_its_name(load):
    even = load("is_even", "is_odd", 1)
    assert even.with_gil(0) == 1
    assert "is_odd" in memrt.unresolved_symbols()
    with pytest.raises(RuntimeError, match="called the symbol is_odd, which is not defined"):
        even.with_gil(1)
    memrt.check_symbols()


def test_without_the_gil_the_error_waits_for_who_asks(load):
    even = load("is_even", "is_odd", 1)
    assert even.without_gil(1) == -1
    with pytest.raises(RuntimeError, match="called the symbol is_odd, which is not defined"):
        memrt.check_symbols()
    memrt.check_symbols()


def test_an_error_belongs_to_its_thread(load):
    even = load("is_even", "is_odd", 1)
    thread = threading.Thread(target=even.without_gil, args=[1])
    thread.start()
    thread.join()
    memrt.check_symbols()


def test_functions_that_call_each_other_work_once_both_are_loaded(load):
    even = load("is_even", "is_odd", 1)
    odd = load("is_odd", "is_even", 0)
    assert not {"is_even", "is_odd"} & set(memrt.unresolved_symbols())
    assert [even.with_gil(n) for n in range(6)] == [1, 0, 1, 0, 1, 0]
    assert [odd.with_gil(n) for n in range(6)] == [0, 1, 0, 1, 0, 1]
    odd.unload()
    with pytest.raises(RuntimeError, match="is_odd"):
        even.with_gil(5)


def test_threads_that_call_while_the_other_is_loaded_get_the_error_or_the_answer(load):
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
                    memrt.check_symbols()
            else:
                memrt.check_symbols()
        return answers

    with ThreadPoolExecutor(3) as pool:
        asked = [pool.submit(ask) for _ in range(3)]
        begun.wait()
        load("is_odd", "is_even", 0)
        assert all(each.result() <= {-1, 1} for each in asked)
