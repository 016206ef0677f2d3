"""The commands `memrt live`, `memrt stats` and `memrt find`."""

import argparse
import functools

import gdb

from .counters import Sums, accounts, process_sums
from .live_set import lately_left, live_buffers, now
from .meminfo import HEADER, KINDS, buffer_at, describe
from .policies import policy_and_scope
from .program import text_in
from .tables import human, show_table


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
