"""Teach gdb about memrt: show MemInfos and policies as text, and add `memrt live`, `stats`, `find`.

The file is installed beside the library as libmemrt.so.N-gdb.py. gdb loads the file automatically
if its safe path allows, and `source` loads the file from anywhere. The commands read memory and
field names only, and call no function of the program. So they work on a core file as on a process.
The file needs debug information of libmemrt, and gdb 10 or newer.
"""

import argparse
import functools
import struct
import time

import gdb
import gdb.printing

KINDS = {1: "inline", 2: "adopted", 3: "resizable", 4: "block"}
INLINE = 1
FLAG_DATA_BLOCK = 1 << 16  # data block of a resizable MemInfo, which itself is in the list
HEADER = 64
CODES = {1: "B", 2: "H", 4: "I", 8: "Q"}


# --- Access to the program. ---


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


def policy_at(index):
    policies = symbol("memrt__policies")
    if index >= policies.type.range()[1] + 1 or not policies[index]:
        return None
    return policies[index].dereference()


def base_of(policy):
    """Return the policy that a subpolicy belongs to, or the policy itself."""
    return policy["base"].dereference() if has(policy, "base") and policy["base"] else policy


def scope_of(policy):
    """Return the path of the scope of a policy, outermost scope first, joined by slashes."""
    names = []
    scopes = elements(policy["scope"], "parent") if has(policy, "scope") else ()
    for scope in scopes:
        names.append(text_in(scope["name"]))
    return "/".join(reversed(names))


def policy_and_scope(index):
    """Return the names of the policy and of the scope of an account index."""
    policy = policy_at(index)
    if policy is None:
        return f"#{index}", ""
    return text_in(base_of(policy)["name"]), scope_of(policy)


# --- The live set. ---


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


def parts_of_live_set():
    parts = symbol("partitions", "observe/live_set.c")
    return [parts[index] for index in range(parts.type.range()[1] + 1)]


def slots_of(part):
    """Return address, number and layout of the slots of a partition.

    Address and number are 0 if the partition has no table.
    """
    table = part["table"]
    entries = Layout(table.type.target()["slots"].type.target())
    if not int(table):
        return 0, 0, entries
    return int(table["slots"].address), int(table["capacity"]), entries


def live_buffers():
    """Yield all MemInfos of the live set, in no order."""
    headers = headers_layout()
    for part in parts_of_live_set():
        slots, capacity, entries = slots_of(part)
        data = memory(slots, capacity * entries.size) if slots else b""
        for at in range(0, len(data), entries.size):
            key = entries.read(data, at, "key")
            if key:
                header = memory(key, headers.size)
                yield Buffer(key, headers, header).listed(data, at, entries)


def slot_of(key, slots, capacity, entries):
    """Return the address of the slot with a key, or None. Skips the bytes of the key elsewhere."""
    wanted = struct.pack("<Q", key)
    at, end = slots, slots + capacity * entries.size
    while end - at >= len(wanted):
        found = gdb.selected_inferior().search_memory(at, end - at, wanted)
        if found is None or (found - slots) % entries.size == 0:
            return found
        at = found + 1
    return None


def listed_at(key):
    """Return the MemInfo at an address, with the data of the live set if available."""
    buffer = buffer_at(key)
    for part in parts_of_live_set():
        slots, capacity, entries = slots_of(part)
        found = slot_of(key, slots, capacity, entries)
        if found is not None:
            return buffer.listed(memory(found, entries.size), 0, entries)
    return buffer


def left_of(part):
    """Yield the removed keys that a partition of the live set remembers, the latest first."""
    if not has(part, "removed"):
        return
    room, leavings = part["removed"].type.range()[1] + 1, int(part["removals"])
    for back in range(1, min(room, leavings) + 1):
        yield part["removed"][(leavings - back) % room]


def lately_left(address):
    """Return a freed buffer that contained an address, or None if no such buffer is remembered."""
    for part in parts_of_live_set():
        for left in left_of(part):
            if 0 <= address - int(left["data"]) < max(int(left["size"]), 1):
                return left
    return None


def now(buffers):
    """Return the current time of the clock of allocations.

    For a local process this is the clock of the machine, else the time of the last allocation.
    """
    connection = getattr(gdb.selected_inferior(), "connection", None)
    if connection is not None and connection.type == "native":
        return time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    return max((buffer.allocated for buffer in buffers), default=0)


# --- The counters. ---


def shards(account):
    """Yield the counters of all threads for an account, and the shared counters."""
    index = int(account["index"])
    yield account["shared"].dereference()
    for thread in elements(symbol("first_thread", "thread/thread.c"), "next"):
        if index == 0:
            yield thread["first"]
            continue
        chunks = thread["chunks"]
        per_chunk = (symbol("memrt__policies").type.range()[1] + 1) // (chunks.type.range()[1] + 1)
        chunk = chunks[index // per_chunk]
        if chunk:
            yield chunk[index % per_chunk]


class Sums:
    """Counters, added up as in memrt_stats_t."""

    WORDS = ("bytes_in", "bytes_out", "adopted_in", "adopted_out", "realloc", "failed")

    def __init__(self):
        self.words = dict.fromkeys(self.WORDS, 0)
        self.made = self.freed = 0

    def add(self, shard):
        for name in self.WORDS:
            self.words[name] += int(shard[name])
        for kind in range(shard["made"].type.range()[1] + 1):
            self.made += int(shard["made"][kind])
            self.freed += int(shard["freed"][kind])
        return self

    def add_account(self, account):
        for shard in shards(account):
            self.add(shard)
        return self

    def word(self, name):
        return self.words[name] % 2**64

    @property
    def live(self):
        difference = (self.words["bytes_in"] - self.words["bytes_out"]) % 2**64
        return difference if difference < 2**63 else 0

    @property
    def adopted(self):
        return (self.words["adopted_in"] - self.words["adopted_out"]) % 2**64


def accounts():
    return elements(symbol("first_account", "stats/shard.c"), "next")


def process_sums():
    sums = Sums().add(symbol("memrt__process")["past"])
    for account in accounts():
        sums.add_account(account)
    return sums


# --- Text. ---


def human(size):
    units = ["TiB", "GiB", "MiB", "KiB", "B"]
    amount = float(size)
    while amount >= 1024 and len(units) > 1:
        amount /= 1024
        units.pop()
    return f"{size} B" if units[-1] == "B" else f"{amount:.1f} {units[-1]}"


TEXTS = ("policy", "scope", "name", "kind")


def show_table(heads, rows):
    """Write a table with columns of minimal width: numbers right-aligned, text left-aligned."""
    lines = [heads, *([str(cell) for cell in row] for row in rows)]
    for column, head in enumerate(heads):
        width = max(len(line[column]) for line in lines)
        adjust = str.ljust if head in TEXTS else str.rjust
        for row, line in enumerate(lines):
            lines[row] = [*line[:column], adjust(line[column], width), *line[column + 1 :]]
    for line in lines:
        gdb.write("  ".join(line).rstrip() + "\n")


def describe(buffer):
    """Return a description of a MemInfo in one line."""
    policy, scope = policy_and_scope(buffer.policy)
    holders = "1 reference" if buffer.refcount == 1 else f"{buffer.refcount} references"
    kind = KINDS.get(buffer.kind, f"kind {buffer.kind}")
    parts = [f"{kind} of {buffer.size} bytes at {buffer.data:#x}", holders, f"policy '{policy}'"]
    parts += [f"scope '{scope}'"] if scope else []
    parts += [f"name '{buffer.name}'"] if buffer.name_at else []
    return ", ".join(parts)


# --- Printers. ---


class MemInfoPrinter:
    """Print a MemInfo: a description, then its words."""

    def __init__(self, value):
        self._value = value

    def to_string(self):
        if self._value.address is None:
            return "copy of a MemInfo"
        buffer = listed_at(int(self._value.address))
        return describe(buffer) if buffer.is_sound else "no live MemInfo"

    def children(self):
        for name in ("refct", "dtor", "dtor_info", "data", "size"):
            yield name, self._value[name]


class PolicyPrinter:
    """Print a policy: its name and scope, then its figures and bytes in use."""

    def __init__(self, value):
        self._value = value

    def to_string(self):
        policy, base = self._value, base_of(self._value)
        scope = scope_of(policy)
        inside = f" in scope '{scope}'" if scope else ""
        return f"policy '{text_in(base['name'])}'{inside}"

    def children(self):
        sums = Sums().add_account(self._value["account"])
        yield "index", self._value["account"]["index"]
        yield "alignment", self._value["alignment"]
        yield "refs", self._value["refs"]
        yield "live_bytes", sums.live
        yield "live_blocks", sums.made - sums.freed


def printers():
    collection = gdb.printing.RegexpCollectionPrettyPrinter("memrt")
    collection.add_printer("meminfo", "^memrt_meminfo(_t)?$", MemInfoPrinter)
    collection.add_printer("policy", "^memrt_policy(_t)?$", PolicyPrinter)
    return collection


# --- Commands. ---


class Parser(argparse.ArgumentParser):
    """Argument parser that turns bad arguments into an error of the command, without an exit."""

    def error(self, message):
        raise gdb.GdbError(f"{self.prog}: {message}")


class Command(gdb.Command):
    """Base of the memrt commands: parses arguments, and requires a program."""

    name = ""
    arguments = ()

    def __init__(self):
        super().__init__(f"memrt {self.name}", gdb.COMMAND_DATA)
        self._parser = Parser(prog=f"memrt {self.name}", add_help=False)
        for names, options in self.arguments:
            self._parser.add_argument(*names, **options)

    def invoke(self, text, from_tty):
        options = self._parser.parse_args(gdb.string_to_argv(text))
        if gdb.selected_inferior().pid == 0:
            raise gdb.GdbError("memrt: no program: start one, attach to one, or open a core file")
        try:
            self.run(options)
        except gdb.MemoryError as error:
            raise gdb.GdbError(f"memrt: cannot read the program's memory: {error}") from error

    def run(self, options):
        raise NotImplementedError


class Prefix(gdb.Command):
    """Inspect memory of memrt: `memrt live`, `memrt stats`, `memrt find ADDRESS`."""

    def __init__(self):
        super().__init__("memrt", gdb.COMMAND_DATA, gdb.COMPLETE_NONE, True)

    def invoke(self, text, from_tty):
        gdb.execute("help memrt")


ORDERS = {
    "id": lambda buffer: buffer.id,
    "size": lambda buffer: -buffer.size,
    "refcount": lambda buffer: -buffer.refcount,
}


class Live(Command):
    """List live buffers that tracking or naming has put into the live set.

    memrt live [--sort id|size|refcount] [--limit N]

    Sorts by allocation order, by size (largest first), or by references (most first). Ages count
    up to now; in a core file, up to the last allocation.
    """

    name = "live"
    arguments = (
        (("--sort",), {"choices": sorted(ORDERS), "default": "id"}),
        (("--limit",), {"type": int, "default": 50}),
    )

    HEADS = ("id", "size", "refs", "age", "thread", "kind", "policy", "scope", "name")

    def run(self, options):
        buffers = [buffer for buffer in live_buffers() if buffer.is_live]
        if not buffers:
            gdb.write("no live buffers: only buffers allocated while tracking is on are listed\n")
            return
        moment = now(buffers)
        shown = sorted(buffers, key=ORDERS[options.sort])[: max(options.limit, 0)]
        names = functools.lru_cache(None)(policy_and_scope)
        show_table(self.HEADS, [self.row(buffer, moment, names) for buffer in shown])
        rest = len(buffers) - len(shown)
        total = human(sum(buffer.size for buffer in buffers))
        more = f", {rest} not shown" if rest else ""
        gdb.write(f"{len(buffers)} live buffers, {total}{more}\n")

    @staticmethod
    def row(buffer, moment, names):
        return (
            buffer.id,
            buffer.size,
            buffer.refcount,
            f"{max(moment - buffer.allocated, 0) / 1e9:.1f} s",
            buffer.thread,
            KINDS.get(buffer.kind, buffer.kind),
            *names(buffer.policy),
            buffer.name,
        )


class Stats(Command):
    """Show counters of the process, and of each policy and scope.

    memrt stats
    """

    name = "stats"
    HEADS = ("live", "blocks", "ever", "total", "failed", "policy", "scope")

    def run(self, options):
        rows = [self.row(process_sums(), "all", "")]
        for account in accounts():
            rows.append(self.row(Sums().add_account(account), *policy_and_scope(account["index"])))
        show_table(self.HEADS, rows)

    @staticmethod
    def row(sums, policy, scope):
        blocks = sums.made - sums.freed
        return (
            sums.live,
            blocks,
            sums.made,
            sums.word("bytes_in"),
            sums.word("failed"),
            policy,
            scope,
        )


class Find(Command):
    """Find the buffer that contains an address.

    memrt find ADDRESS

    ADDRESS is any expression. For a buffer outside the live set, only the address of its MemInfo
    and of its first byte are recognized. Recently freed buffers of the live set are reported too.
    """

    name = "find"

    def __init__(self):
        gdb.Command.__init__(self, "memrt find", gdb.COMMAND_DATA, gdb.COMPLETE_EXPRESSION)
        self._parser = Parser(prog="memrt find", add_help=False)
        self._parser.add_argument("address", nargs="+")

    def run(self, options):
        address = int(gdb.parse_and_eval(" ".join(options.address))) % 2**64
        gdb.write(self.answer(address) + "\n")

    def answer(self, address):
        buffer = self.listed(address) or self.headed(address)
        if buffer is not None:
            where = self.place(address, buffer)
            return f"{address:#x} is {where} of MemInfo {buffer.key:#x}: {describe(buffer)}"
        left = lately_left(address)
        if left is not None:
            name = text_in(left["name"])
            named = f" '{name}'" if name else ""
            return (
                f"{address:#x} is in freed buffer{named} of {int(left['size'])} bytes at "
                f"{int(left['data']):#x}, policy '{text_in(left['policy'])}'"
            )
        return f"{address:#x} is in no known buffer"

    @staticmethod
    def listed(address):
        for buffer in live_buffers():
            inside = 0 <= address - buffer.data < max(buffer.size, 1)
            if buffer.is_live and (inside or address == buffer.key):
                return buffer
        return None

    @staticmethod
    def headed(address):
        for key in (address, address - HEADER):
            try:
                buffer = buffer_at(key) if key >= 0 and key % HEADER == 0 else None
            except gdb.MemoryError:
                continue
            if buffer is not None and buffer.is_sound and address in (key, buffer.data):
                return buffer
        return None

    @staticmethod
    def place(address, buffer):
        return "the header" if address == buffer.key else f"byte {address - buffer.data}"


def install():
    gdb.printing.register_pretty_printer(gdb.current_objfile(), printers(), replace=True)
    for command in (Prefix, Live, Stats, Find):
        command()


install()
