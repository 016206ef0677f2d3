"""Record traces of allocations from the benchmark's programs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from parts.programs import PROGRAMS, run_program
from places import OUT, WORKERS, compiled
from subjects import DEFAULT, Subject

ALLOC, CALLOC, REALLOC, FREE = 1, 2, 3, 4  # as in trace.h
EVENT = np.dtype([(name, np.uint64) for name in ("block", "old", "size", "call")])
RECORDED = ("heat equation", "neural network", "group by", "photo pipeline", "cross-validation")


def numbered(events: np.ndarray) -> tuple[np.ndarray, int]:
    """Replace addresses by unique block numbers. Skip frees of blocks older than the trace.

    Return the events and the number of blocks. A realloc of an older block becomes an allocation.
    """
    numbers: dict[int, int] = {}
    count = 0
    kept = []
    for block, old, size, call in events.tolist():
        if call == FREE:
            if block in numbers:
                kept.append((numbers.pop(block), 0, 0, FREE))
            continue
        before = numbers.pop(old, None) if call == REALLOC else None
        numbers[block] = count
        kept.append(
            (count, before or 0, size, ALLOC if call == REALLOC and before is None else call)
        )
        count += 1
    return np.array(kept, EVENT), count


def record(program: str, folder: Path = OUT) -> Path:
    """Run a program, record its calls of malloc, and return the path of the trace."""
    raw = folder / "trace.raw"
    recorder = Subject("recorder", DEFAULT, preload=str(compiled(WORKERS / "native" / "record.c")))
    run_program(program, recorder, record=str(raw))
    events, blocks = numbered(np.fromfile(raw, EVENT))
    path = folder / f"trace-{program.replace(' ', '-')}.npz"
    np.savez(path, events=events, blocks=blocks)
    raw.unlink()
    return path


def recorded() -> dict[str, Path]:
    """Record all traces and return their paths, by program."""
    assert set(RECORDED) <= set(PROGRAMS)
    return {program: record(program) for program in RECORDED}
