"""Write event traces as CSV, with a row for each event."""

from __future__ import annotations

import csv
import io
from functools import cache
from typing import IO, Any

from memrt._trace.events import EVENT_NAMES, KIND_NAMES, MARK
from memrt._trace.reader import Trace
from memrt.commands.output.progress import with_progress
from memrt.commands.output.table import text_cell

HEADER = (
    "seconds",
    "event",
    "block",
    "bytes",
    "live_bytes",
    "kind",
    "alignment",
    "policy",
    "scope",
    "thread",
    "place",
    "mark",
)
_PIECE = 20_000


def write(trace: Trace, file: IO[bytes]) -> None:
    text = io.TextIOWrapper(file, "utf-8", newline="", write_through=True)
    writer = csv.writer(text)
    writer.writerow(HEADER)
    places = cache(lambda site: "" if site == 0 else text_cell(str(trace.place(site) or "")))
    starts = range(0, len(trace), _PIECE)
    for start in with_progress(starts, len(starts), "writing"):
        rows = trace.events[start : start + _PIECE].tolist()
        live = trace.live[start : start + _PIECE].tolist()
        writer.writerows(
            _row(trace, row, nbytes, places) for row, nbytes in zip(rows, live, strict=True)
        )
    text.detach()


def _row(trace: Trace, event: tuple[Any, ...], live: int, places: Any) -> tuple[Any, ...]:
    time, nbytes, block, site, policy, kind_of_event, kind, align_log2, thread = event
    known = trace.policies.get(policy)
    is_mark = kind_of_event == MARK
    return (
        f"{time / 1e9:.9f}",
        EVENT_NAMES.get(kind_of_event, kind_of_event),
        "" if is_mark else block,
        "" if is_mark else nbytes,
        live,
        KIND_NAMES[kind] if kind < len(KIND_NAMES) else kind,
        1 << align_log2 if 0 < align_log2 < 64 else "",
        "" if known is None else text_cell(known.name),
        "" if known is None or known.scope is None else text_cell(known.scope),
        thread,
        places(site),
        text_cell(trace._text(block) or "") if is_mark else "",
    )
