"""Variables, structs and memory of the program under gdb."""

import struct

import gdb

CODES = {1: "B", 2: "H", 4: "I", 8: "Q"}


def symbol(name, source=""):
    """Return a variable of libmemrt by name.

    `source` is the end of the file name, for a name that several files share.
    """
    found = gdb.lookup_global_symbol(name)
    if found is None:
        statics = gdb.lookup_static_symbols(name)
        found = next((s for s in statics if s.symtab.filename.endswith(source)), None)
    if found is None:
        raise gdb.GdbError(why_not())
    return found.value()


def why_not():
    libraries = [o.filename for o in gdb.objfiles() if "libmemrt" in (o.filename or "")]
    if not libraries:
        return "memrt: the program has no libmemrt with debug information"
    return (
        f"memrt: {libraries[0]} has no debug information: build libmemrt with -g, as CMake does "
        "with -DCMAKE_BUILD_TYPE=RelWithDebInfo, and do not strip the file"
    )


class Layout:
    """Byte offsets of the fields of a struct, to decode many structs from one read of memory."""

    def __init__(self, kind):
        self.size = kind.sizeof
        self._fields = {
            field.name: (field.bitpos // 8, "<" + CODES[field.type.sizeof])
            for field in kind.fields()
            if field.name and field.type.sizeof in CODES
        }

    def read(self, data, at, name, missing=0):
        """Return a field of the struct at offset `at` of `data`, as a number."""
        if name not in self._fields:
            return missing
        offset, code = self._fields[name]
        return struct.unpack_from(code, data, at + offset)[0]


def memory(address, size):
    return gdb.selected_inferior().read_memory(address, size)


def text_at(address):
    """Return the zero-terminated text at an address, "" for address 0."""
    pointer = gdb.Value(address).cast(gdb.lookup_type("char").pointer())
    return pointer.string(errors="replace") if address else ""


def text_in(value):
    """Return the text in an array of characters."""
    return value.string(errors="replace")


def has(value, name):
    return any(field.name == name for field in value.type.fields())


def elements(head, link):
    """Yield the structs of a linked list, from a pointer to the first struct on."""
    while head:
        yield head.dereference()
        head = head[link]
