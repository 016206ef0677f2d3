"""MemInfos, read from their headers."""

import gdb

from .policies import policy_and_scope, policy_at
from .program import Layout, memory, symbol, text_at

KINDS = {1: "inline", 2: "adopted", 3: "resizable", 4: "block"}

INLINE = 1

FLAG_DATA_BLOCK = 1 << 16  # data block of a resizable MemInfo, which itself is in the list

HEADER = 64


class Buffer:
    """A MemInfo, with the data of the live set for a MemInfo in the live set."""

    def __init__(self, key, layout, header):
        self.key = key
        self.data = layout.read(header, 0, "data")
        self.size = layout.read(header, 0, "size")
        self.refcount = layout.read(header, 0, "refct")
        self.kind = layout.read(header, 0, "kind")
        self.flags = layout.read(header, 0, "flags")
        self.policy = layout.read(header, 0, "policy")
        self.id = self.allocated = self.thread = self.name_at = 0

    def listed(self, slots, at, layout):
        self.id = layout.read(slots, at, "id")
        self.allocated = layout.read(slots, at, "allocated")
        self.thread = layout.read(slots, at, "thread")
        self.name_at = layout.read(slots, at, "name")
        return self

    @property
    def name(self):
        return text_at(self.name_at)

    @property
    def is_live(self):
        return self.refcount != 0 and not self.flags & FLAG_DATA_BLOCK

    @property
    def is_sound(self):
        """Whether the bytes read can be a MemInfo."""
        return (
            0 < self.refcount < 2**40
            and self.kind in KINDS
            and policy_at(self.policy) is not None
            and (self.kind != INLINE or self.data == self.key + HEADER)
        )


def headers_layout():
    symbol("memrt__policies")  # raises an error that explains missing debug information
    return Layout(gdb.lookup_type("struct memrt_meminfo"))


def buffer_at(key):
    layout = headers_layout()
    return Buffer(key, layout, memory(key, layout.size))


def describe(buffer):
    """Return a description of a MemInfo in one line."""
    policy, scope = policy_and_scope(buffer.policy)
    holders = "1 reference" if buffer.refcount == 1 else f"{buffer.refcount} references"
    kind = KINDS.get(buffer.kind, f"kind {buffer.kind}")
    parts = [f"{kind} of {buffer.size} bytes at {buffer.data:#x}", holders, f"policy '{policy}'"]
    parts += [f"scope '{scope}'"] if scope else []
    parts += [f"name '{buffer.name}'"] if buffer.name_at else []
    return ", ".join(parts)
