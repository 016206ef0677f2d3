"""gdb on memrt: MemInfos and policies as text, and `memrt live`, `memrt stats`, `memrt find`.

Installed beside the library as libmemrt.so.N-gdb.py, which gdb loads by itself where its safe path
allows it, and which `source` loads anywhere. Reads memory alone, by the names of fields: no
function of the program is called, so a core file serves as well as a process. Needs debug
information of libmemrt, and gdb 10 or newer.
"""

import argparse
import functools
import struct
import time

import gdb
import gdb.printing

KINDS = {1: "inline", 2: "adopted", 3: "resizable", 4: "block"}
INLINE = 1
FLAG_PART = 16  # data of a resizable MemInfo, which is listed itself
HEADER = 64
CODES = {1: "B", 2: "H", 4: "I", 8: "Q"}


# --- What the program has. ---


def symbol(name, source=""):
    """A variable of libmemrt, by its name and, where others share it, the end of its file's."""
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
        return "memrt: no libmemrt with debug information in this program"
    return (
        f"memrt: {libraries[0]} has no debug information: build it with -g, as CMake does with "
        "-DCMAKE_BUILD_TYPE=RelWithDebInfo, and do not strip it"
    )


class Layout:
    """Where the fields of a struct lie, so that many can be read at once."""

    def __init__(self, kind):
        self.size = kind.sizeof
        self._fields = {
            field.name: (field.bitpos // 8, "<" + CODES[field.type.sizeof])
            for field in kind.fields()
            if field.name and field.type.sizeof in CODES
        }

    def read(self, data, at, name, missing=0):
        """A field, as a number, of the struct at an offset of `data`."""
        if name not in self._fields:
            return missing
        offset, code = self._fields[name]
        return struct.unpack_from(code, data, at + offset)[0]


def memory(address, size):
    return gdb.selected_inferior().read_memory(address, size)


def text_at(address):
    """The text that ends with a zero; "" for no address."""
    pointer = gdb.Value(address).cast(gdb.lookup_type("char").pointer())
    return pointer.string(errors="replace") if address else ""


def text_in(value):
    """The text in an array of characters."""
    return value.string(errors="replace")


def has(value, name):
    return any(field.name == name for field in value.type.fields())


def elements(head, link):
    """The structs of a list, from a pointer to the first on."""
    while head:
        yield head.dereference()
        head = head[link]


def policy_at(index):
    policies = symbol("memrt__policies")
    if index >= policies.type.range()[1] + 1 or not policies[index]:
        return None
    return policies[index].dereference()


def base_of(policy):
    """The policy that a part of it in a scope belongs to."""
    return policy["base"].dereference() if has(policy, "base") and policy["base"] else policy


def scope_of(policy):
    """The names of its scope and of those around it."""
    names = []
    scopes = elements(policy["scope"], "parent") if has(policy, "scope") else ()
    for scope in scopes:
        names.append(text_in(scope["name"]))
    return "/".join(reversed(names))


def policy_and_scope(index):
    """The names of the policy and of the scope that the account of a block is for."""
    policy = policy_at(index)
    if policy is None:
        return f"#{index}", ""
    return text_in(base_of(policy)["name"]), scope_of(policy)


# --- The live set. ---


class Buffer:
    """A MemInfo, and what the live set knows of it, if it is in it."""

    def __init__(self, key, layout, header):
        self.key = key
        self.data = layout.read(header, 0, "data")
        self.size = layout.read(header, 0, "size")
        self.refcount = layout.read(header, 0, "refct")
        self.kind = layout.read(header, 0, "kind")
        self.flags = layout.read(header, 0, "flags")
        self.policy = layout.read(header, 0, "policy")
        self.id = self.birth = self.thread = self.name_at = 0

    def listed(self, slots, at, layout):
        self.id = layout.read(slots, at, "id")
        self.birth = layout.read(slots, at, "birth")
        self.thread = layout.read(slots, at, "thread")
        self.name_at = layout.read(slots, at, "name")
        return self

    @property
    def name(self):
        return text_at(self.name_at)

    @property
    def is_live(self):
        return self.refcount != 0 and not self.flags & FLAG_PART

    @property
    def is_sound(self):
        """Whether what was read may be a MemInfo at all."""
        return (
            0 < self.refcount < 2**40
            and self.kind in KINDS
            and policy_at(self.policy) is not None
            and (self.kind != INLINE or self.data == self.key + HEADER)
        )


def headers_layout():
    symbol("memrt__policies")  # says what is missing
    return Layout(gdb.lookup_type("struct memrt_meminfo"))


def buffer_at(key):
    layout = headers_layout()
    return Buffer(key, layout, memory(key, layout.size))


def parts_of_live_set():
    parts = symbol("parts", "debug/live.c")
    return [parts[index] for index in range(parts.type.range()[1] + 1)]


def slots_of(part):
    """Address and number of the slots of a part, and where the fields of one lie."""
    return int(part["slots"]), int(part["capacity"]), Layout(part["slots"].type.target())


def live_buffers():
    """All that the live set has, in no order."""
    headers = headers_layout()
    for part in parts_of_live_set():
        slots, capacity, entries = slots_of(part)
        data = memory(slots, capacity * entries.size) if slots else b""
        for at in range(0, len(data), entries.size):
            key = entries.read(data, at, "key")
            if key:
                header = memory(key, headers.size)
                yield Buffer(key, headers, header).listed(data, at, entries)


def listed_at(key):
    """The MemInfo at an address, with what the live set knows of it, if it does."""
    buffer = buffer_at(key)
    for part in parts_of_live_set():
        slots, capacity, entries = slots_of(part)
        found = slots and gdb.selected_inferior().search_memory(
            slots, capacity * entries.size, struct.pack("<Q", key)
        )
        if found and (found - slots) % entries.size == 0:
            return buffer.listed(memory(found, entries.size), 0, entries)
    return buffer


def left_of(part):
    """What a part of the live set remembers of those that left, the last first."""
    if not has(part, "left"):
        return
    room, leavings = part["left"].type.range()[1] + 1, int(part["leavings"])
    for back in range(1, min(room, leavings) + 1):
        yield part["left"][(leavings - back) % room]


def lately_left(address):
    """A buffer at an address that is known to have been freed."""
    for part in parts_of_live_set():
        for left in left_of(part):
            if 0 <= address - int(left["data"]) < max(int(left["size"]), 1):
                return left
    return None


def now(buffers):
    """The clock of births: that of the machine for a process on it, else the last birth."""
    connection = getattr(gdb.selected_inferior(), "connection", None)
    if connection is not None and connection.type == "native":
        return time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    return max((buffer.birth for buffer in buffers), default=0)


# --- The counters. ---


def shards(account):
    """The counters of all threads for an account, and the shared ones."""
    index = int(account["index"])
    yield account["shared"].dereference()
    for thread in elements(symbol("first", "stats/thread.c"), "next"):
        if index == 0:
            yield thread["first"]
            continue
        chunks = thread["chunks"]
        per_chunk = (symbol("memrt__policies").type.range()[1] + 1) // (chunks.type.range()[1] + 1)
        chunk = chunks[index // per_chunk]
        if chunk:
            yield chunk[index % per_chunk]


class Sums:
    """Counters, added up as memrt_stats_t has them."""

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
    """Columns as wide as they need be: numbers to the right, text to the left."""
    lines = [heads, *([str(cell) for cell in row] for row in rows)]
    for column, head in enumerate(heads):
        width = max(len(line[column]) for line in lines)
        adjust = str.ljust if head in TEXTS else str.rjust
        for row, line in enumerate(lines):
            lines[row] = [*line[:column], adjust(line[column], width), *line[column + 1 :]]
    for line in lines:
        gdb.write("  ".join(line).rstrip() + "\n")


def describe(buffer):
    """A MemInfo in a line."""
    policy, scope = policy_and_scope(buffer.policy)
    holders = "1 reference" if buffer.refcount == 1 else f"{buffer.refcount} references"
    kind = KINDS.get(buffer.kind, f"kind {buffer.kind}")
    parts = [f"{kind} of {buffer.size} bytes at {buffer.data:#x}", holders, f"policy '{policy}'"]
    parts += [f"scope '{scope}'"] if scope else []
    parts += [f"name '{buffer.name}'"] if buffer.name_at else []
    return ", ".join(parts)


# --- Printers. ---


class MemInfoPrinter:
    """A MemInfo: what it is, then its words."""

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
    """A policy: what it is called, and what is in use of it."""

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
    """Bad arguments are an error of the command, and end nothing else."""

    def error(self, message):
        raise gdb.GdbError(f"{self.prog}: {message}")


class Command(gdb.Command):
    """A command of memrt's: parses its arguments and needs a program."""

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
    """Memory that memrt manages: `memrt live`, `memrt stats`, `memrt find ADDRESS`."""

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
    """List the live buffers that tracking knows, and those that have a name.

    memrt live [--sort id|size|refcount] [--limit N]

    Oldest first, or the largest, or those with most references. Ages count to now, in a core file
    to the last birth.
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
            gdb.write("no live buffers: were they made while tracking was on?\n")
            return
        moment = now(buffers)
        shown = sorted(buffers, key=ORDERS[options.sort])[: max(options.limit, 0)]
        names = functools.lru_cache(None)(policy_and_scope)
        show_table(self.HEADS, [self.row(buffer, moment, names) for buffer in shown])
        rest = len(buffers) - len(shown)
        total = human(sum(buffer.size for buffer in buffers))
        more = f", {rest} of them not shown" if rest else ""
        gdb.write(f"{len(buffers)} live buffers, {total}{more}\n")

    @staticmethod
    def row(buffer, moment, names):
        return (
            buffer.id,
            buffer.size,
            buffer.refcount,
            f"{max(moment - buffer.birth, 0) / 1e9:.1f} s",
            buffer.thread,
            KINDS.get(buffer.kind, buffer.kind),
            *names(buffer.policy),
            buffer.name,
        )


class Stats(Command):
    """Show what was counted: for the process, and for each policy and scope.

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
    """Say which buffer an address lies in.

    memrt find ADDRESS

    ADDRESS is any expression. Inside of a buffer that is not in the live set only its first byte
    and its MemInfo are known. Buffers of the live set that were freed lately are told as well.
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
                f"{address:#x} was in buffer{named} of {int(left['size'])} bytes at "
                f"{int(left['data']):#x}, policy '{text_in(left['policy'])}', which was freed"
            )
        return f"{address:#x} is in no buffer that is known"

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
