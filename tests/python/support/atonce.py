"""Run a function on several threads at once, or again and again during a block."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Any


def on_threads(function: Callable[[int], Any], count: int = 8) -> list[Any]:
    """Call `function` with 0, 1, 2... on threads that start together, and return the results.

    An exception of a thread is raised again, after the end of all threads.
    """
    begin = threading.Barrier(count)
    results: list[Any] = [None] * count
    errors: list[BaseException] = []

    def work(number: int) -> None:
        begin.wait()
        try:
            results[number] = function(number)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return results


@contextlib.contextmanager
def threads_repeat(function: Callable[[], object], count: int) -> Iterator[None]:
    """Call `function` repeatedly on threads, until the block ends."""
    stop = threading.Event()

    def work() -> None:
        while not stop.is_set():
            function()

    threads = [threading.Thread(target=work) for _ in range(count)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join()
