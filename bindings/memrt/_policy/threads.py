"""Patches of Thread and ThreadPoolExecutor: new threads get a policy, submitted calls a scope."""

from __future__ import annotations

import functools
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import MethodType
from typing import Any

from memrt import _memrt
from memrt._policy.scope_entry import bind_scope


class Patch:
    """Replacement of a method of a class, from put() to remove().

    The replacement is made once for each original, so put() after remove() needs no memory. Signal
    handlers may call both.
    """

    def __init__(self, owner: type, name: str, make: Callable[[Any], Any]) -> None:
        """Prepare the replacement of `name`, without putting the replacement in place.

        Parameters
        ----------
        owner : type
            Class with the method.
        name : str
            Name of the method.
        make : Callable[[Any], Any]
            Function that takes the present method and returns the new method. The new method calls
            the present method.
        """
        # The class that defines the method: gevent replaces Thread by a subclass.
        self._owner = next(each for each in owner.__mro__ if name in vars(each))
        self._methods = vars(self._owner)
        self._name, self._make = name, make
        self._original = self._method = None

    def put(self) -> None:
        """Install the method, unless the class already has the method or a wrapper of the method.

        A wrapper is recognized by the attribute ``__wrapped__``.
        """
        present = self._methods[self._name]
        wrapped = getattr(present, "__wrapped__", None)
        if self._method is not None and (present is self._method or wrapped is self._method):
            return
        if present is not self._original:  # after remove(), the present method is the original
            method = self._make(present)
            self._original, self._method = present, method
        setattr(self._owner, self._name, self._method)

    def remove(self) -> None:
        """Restore the original, unless another library's patch is above. Needs no memory."""
        if self._method is not None and self._methods[self._name] is self._method:
            setattr(self._owner, self._name, self._original)


class _Method:
    """Method implemented in C, so the call stack of a thread has no Python frame of memrt."""

    def __init__(self, call: Callable[[threading.Thread], None], original: Any) -> None:
        self._call = call
        self.__wrapped__ = original

    def __get__(self, thread: threading.Thread | None, owner: type | None = None) -> Any:
        return self if thread is None else MethodType(self._call, thread)

    def __call__(self, thread: threading.Thread) -> None:
        self._call(thread)


def thread_patch(begin: Callable[[], object]) -> Patch:
    """Return a patch that makes each new thread call `begin` in its own context, before all else.

    The patched method is the first method of Thread that runs in a new thread. Subclasses override
    `start` and `run`, and mocks replace both; the patched method is private. Threads may call
    `begin` after remove(), where another library's patch still calls the method.
    """

    def enter(thread: threading.Thread) -> None:
        if sys.version_info >= (3, 14):  # pragma: no cover - newer than the Pythons of the gate
            thread._context.run(begin)
        else:
            begin()

    def make(original: Any) -> _Method:
        return _Method(functools.partial(_memrt.call_after, enter, original), original)

    return Patch(threading.Thread, "_bootstrap_inner", make)


def executor_patch(wanted: Callable[[], bool]) -> Patch:
    """Return a patch that runs submitted calls in the scope of the submitter.

    The patch has no effect while `wanted` returns false.
    """

    def make(original: Any) -> Any:
        @functools.wraps(original)
        def submit(executor: Any, function: Any, /, *args: Any, **kwargs: Any) -> Any:
            call = bind_scope(function) if wanted() else function
            return original(executor, call, *args, **kwargs)

        return submit

    return Patch(ThreadPoolExecutor, "submit", make)
