"""Run a function on several threads at once."""

from __future__ import annotations

import threading
from collections.abc import Callable
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
