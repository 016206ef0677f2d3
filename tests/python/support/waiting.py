"""Wait for the effect of pending calls, and for other tests."""

from __future__ import annotations

import contextlib
import fcntl
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path


def wait_for(condition: Callable[[], object], seconds: float = 10.0) -> None:
    """Run bytecode until the condition holds, so that pending calls run."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.001)


@contextlib.contextmanager
def only_user_of_dead_pages() -> Iterator[None]:
    """Wait for other tests that need statistics pages of killed processes, or remove them."""
    path = Path(tempfile.gettempdir(), f"memrt-dead-pages-{os.geteuid()}.lock")
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
