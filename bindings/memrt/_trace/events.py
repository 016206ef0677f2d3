"""Types of the events in a trace, and the columns of events in the file and in memory."""

from __future__ import annotations

import numpy as np

ALLOC, ADOPTION, RESIZE, FREE, FAILURE, MARK = 1, 2, 3, 4, 5, 6

EVENT_NAMES = {
    ALLOC: "alloc",
    ADOPTION: "adoption",
    RESIZE: "resize",
    FREE: "free",
    FAILURE: "failure",
    MARK: "mark",
}
KIND_NAMES = ("", "inline", "adopted", "resizable", "block")
"""Names of the kinds of blocks, by the column `kind`."""
ADOPTED = KIND_NAMES.index("adopted")

STORED = np.dtype(
    [
        ("time", "u8"),
        ("nbytes", "u8"),
        ("block", "u4"),
        ("site", "u4"),
        ("policy", "u4"),
        ("type", "u1"),
        ("kind", "u1"),
        ("align_log2", "u1"),
        ("reserved", "u1"),
    ]
)
"""Columns of an event in the file."""

FIELDS = STORED.names[:-1]  # type: ignore[index]
"""Names of the columns that STORED and EVENT share."""

EVENT = np.dtype([*((name, STORED[name].str[1:]) for name in FIELDS), ("thread", "u4")])
"""Columns of :attr:`memrt.debug.Trace.events`."""
