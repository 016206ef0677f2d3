"""What threads begin with that Python starts, and what is submitted to their pools."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeAlias

from memrt import _memrt
from memrt._scopes import carry

Action: TypeAlias = Callable[[], object]


class Patch:
    """Stands in for a method of a class from put() to remove()."""

    def __init__(self, owner: type, name: str, make: Callable[[Patch, Any], Any]) -> None:
        self.active = True
        self._owner, self._name = owner, name
        self._original = getattr(owner, name)
        self._method = functools.wraps(self._original)(make(self, self._original))

    def put(self) -> None:
        setattr(self._owner, self._name, self._method)

    def remove(self) -> None:
        """Take it off; below another library's patch it stays, and only passes on."""
        self.active = False
        if getattr(self._owner, self._name) is self._method:
            setattr(self._owner, self._name, self._original)


def thread_patch(prepare: Callable[[], tuple[Action, Action]]) -> Patch:
    """Threads begin and end with what `prepare`, called where they are started, returns."""

    def make(patch: Patch, original: Any) -> Any:
        def start(thread: threading.Thread) -> None:
            if not patch.active:
                original(thread)
                return
            restore = _surround(thread, *prepare())
            try:
                original(thread)
            except BaseException:
                restore()
                raise

        return start

    return Patch(threading.Thread, "start", make)


def executor_patch() -> Patch:
    """What is submitted runs in the scope of who submits it."""

    def make(patch: Patch, original: Any) -> Any:
        def submit(executor: Any, function: Any, /, *args: Any, **kwargs: Any) -> Any:
            carried = carry(function) if patch.active else function
            return original(executor, carried, *args, **kwargs)

        return submit

    return Patch(ThreadPoolExecutor, "submit", make)


def _surround(thread: threading.Thread, begin: Action, end: Action) -> Action:
    """Let `thread.run` begin and end with these; returns what puts the attribute back."""
    run = thread.run
    own = vars(thread).get("run")

    def restore() -> None:
        if own is None:
            vars(thread).pop("run", None)
        else:
            thread.run = own  # type: ignore[method-assign]

    def restore_and_begin() -> None:
        restore()
        begin()

    # In C, so that a traceback of the thread shows the program's frames alone.
    thread.run = functools.partial(_memrt.call_between, restore_and_begin, run, end)  # type: ignore
    return restore
