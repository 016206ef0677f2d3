"""Refuse wrong arguments while one request of Python's allocators fails (worker process).

Each call must raise MemoryError, or the error that the call raises with memory. nomemory must be
importable. The exit status is 1 if a call raised another error.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial

import memrt
import nomemory
from memrt import _memrt

HUGE = 10**5000  # more digits than Python converts to text
REFUSED: dict[str, tuple[Callable[[], object], type[Exception]]] = {
    "negative size": (partial(memrt.alloc, -HUGE), ValueError),
    "option value": (partial(_memrt.set_option, "MEMRT_CACHE", "maybe"), ValueError),
    "kind of CUDA memory": (partial(_memrt.cuda_stats, 99), ValueError),
    "object without memory": (partial(_memrt.find_holders, 5, 0, 0), TypeError),
    "thing without __dlpack__": (partial(memrt.from_dlpack, 5), TypeError),
}


def outcome(call: Callable[[], object], nth: int) -> type | None:
    try:
        nomemory.run(call, nth, False)
    except Exception as error:
        return type(error)
    return None


def outcomes(call: Callable[[], object]) -> set[type | None]:
    """Let each request of a call fail in turn, and return all errors."""
    found = set()
    nth, seen = 0, 1
    while seen >= nth:
        nth += 1
        found.add(outcome(call, nth))
        seen = nomemory.points()
    return found


def main() -> int:
    wrong = 0
    for name, (call, error) in REFUSED.items():
        found = outcomes(call)
        if found != {error, MemoryError}:
            print(f"{name}: {found}", file=sys.stderr)
            wrong = 1
    return wrong


if __name__ == "__main__":
    sys.exit(main())
