"""Write event trace files with any content."""

from __future__ import annotations

import struct

from memrt._trace.trace_file import (
    END,
    EVENTS,
    MAGIC,
    ORDER,
    POLICY,
    SITE,
    TEXT,
)

INLINE, ADOPTED = 1, 2


class Writer:
    """Write a trace file in either byte order, by the documented format."""

    def __init__(self, order="<", version=1, last=0):
        self.order = order
        self.content = MAGIC + struct.pack(
            f"{order}4I3Q16s", ORDER, version, 64, 32, 123, 10**18, last, b"9.8.7"
        )

    def record(self, kind, payload):
        payload += b"\0" * (-len(payload) % 8)
        self.content += struct.pack(f"{self.order}2I", kind, len(payload)) + payload
        return self

    def text(self, number, text):
        data = text.encode()
        return self.record(TEXT, struct.pack(f"{self.order}2I", number, len(data)) + data)

    def site(self, number, *frames):
        rows = [struct.pack(f"{self.order}2I2Q", *frame) for frame in frames]
        return self.record(
            SITE, struct.pack(f"{self.order}2I", number, len(frames)) + b"".join(rows)
        )

    def policy(self, number, name, scope=0):
        return self.record(POLICY, struct.pack(f"{self.order}4IQ", number, name, scope, 5, 64))

    def events(self, *events, thread=1):
        """Add events: time, type, block, size, and optionally kind, site, policy."""
        rows, row = [], struct.Struct(f"{self.order}2Q3I4B")
        for when, what, block, size, *more in events:
            kind, site, policy = (*more, *(INLINE, 0, 0)[len(more) :])
            rows.append(row.pack(when, size, block, site, policy, what, kind, 6, 0))
        head = struct.pack(f"{self.order}2I", thread, len(rows))
        return self.record(EVENTS, head + b"".join(rows))

    def end(self, events=0, lost=0, overwritten=0, duration=0):
        return self.record(END, struct.pack(f"{self.order}4Q", events, lost, overwritten, duration))
