"""Run a function in another thread."""

from __future__ import annotations

import threading
from collections.abc import Callable


def elsewhere(function: Callable[[], object]) -> None:
    """Call a function in a new thread and wait for the end of the thread."""
    thread = threading.Thread(target=function)
    thread.start()
    thread.join()
