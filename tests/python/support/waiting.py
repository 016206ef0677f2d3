"""Wait for the effect of pending calls."""

from __future__ import annotations

import time
from collections.abc import Callable


def wait_for(condition: Callable[[], object], seconds: float = 10.0) -> None:
    """Run bytecode until the condition holds, so that pending calls run."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.001)
