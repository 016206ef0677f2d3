"""What is to happen in another thread."""

from __future__ import annotations

import threading
from collections.abc import Callable


def elsewhere(function: Callable[[], object]) -> None:
    """Call it in a thread of its own, which has ended then."""
    thread = threading.Thread(target=function)
    thread.start()
    thread.join()
