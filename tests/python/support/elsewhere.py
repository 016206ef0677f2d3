"""Run a function in another thread, create objects there."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any


def elsewhere(function: Callable[[], object]) -> None:
    """Call a function in a new thread and wait for the end of the thread."""
    thread = threading.Thread(target=function)
    thread.start()
    thread.join()


def created_elsewhere(create: Callable[[], object]) -> list[Any]:
    """Return a list with an object that an ended thread created, so any thread can free the object.

    Without a GIL, CPython leaves the free of an object to the thread that created the object, as
    long as the thread runs.
    """
    box: list[object] = []
    elsewhere(lambda: box.append(create()))
    return box
