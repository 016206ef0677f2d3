"""Read LLVM IR in the form of LLVM's printer, and delete or move lines.

Only `call` instructions to `NRT_incref` and `NRT_decref` are candidates. Fences are other calls
with the name `NRT_decref`, and calls of functions with the effect of a release.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from memrt.numba.refprune.engine import Plan
from memrt.numba.refprune.flow import Block, Event, Flow, Kind

_VALUE = r'%(?:[-\w.$]+|"[^"]*")'
_ATTRIBUTES = r"(?: [a-z_]+(?:\([^)]*\))?)*"
_REFOP = re.compile(
    r"^  (?:tail |notail )?call (?:[a-z]+ )?void @NRT_(incref|decref)"
    rf"\((?:ptr|i8\*){_ATTRIBUTES} ({_VALUE}|null)(?:, [^\n]*)?\)[^\n]*$"
)
_REFOP_OPERAND = re.compile(rf"call [^\n]*@NRT_(incref|decref)\([^\n%]* ({_VALUE}|null)")
_LABEL = re.compile(r'^(?:([-\w.$]+)|"([^"]*)"):')
_TARGET = re.compile(rf"\blabel ({_VALUE})")
_TERMINATOR = re.compile(
    rf"^  (?:{_VALUE} = )?(br|switch|ret|unreachable|invoke|resume|indirectbr|callbr"
    r"|cleanupret|catchret|catchswitch)\b"
)
_DEFINITION = re.compile(rf"^  ({_VALUE}) = ")
_STORE = re.compile(r"^  store (?:ptr|\S+\*|[\{\[<].*[\}\]>]) %[^,]*, (?!\S+ %retptr\b)")
_FUNCTION = re.compile(r"^define [^\n]*\{[^\n]*\n.*?^\}$", re.MULTILINE | re.DOTALL)

_UNSUPPORTED = frozenset(("cleanupret", "catchret", "catchswitch", "callbr"))
_ACCESSING = ("load ", "store ", "call ", "atomicrmw ", "cmpxchg ", "fence ", "va_arg ")

# Functions of Numba consuming a reference of the caller, contrary to Numba's contract.
_CONSUMING = re.compile(r"@(?:NRT_MemInfo_(?:release|call_dtor)|NRT_meminfo_as_pyobject)\b")


@dataclass
class Body:
    """Text of a function with at least one refop, and the input of the engine."""

    name: str
    lines: list[str]
    flow: Flow = field(default_factory=lambda: Flow([]))
    nulls: list[int] = field(default_factory=list)
    terminators: list[int] = field(default_factory=list)
    is_supported: bool = True


def functions(text: str) -> Iterator[re.Match[str]]:
    """Return the definitions in the text of a module."""
    return _FUNCTION.finditer(text)


def read(text: str, strict: bool) -> Body | None:
    """Return the body of a function, or None if the function has no pair of refops.

    Event idents are indices of lines.
    """
    operands = _candidates(text)
    if not operands:
        return None
    return _Reader(text, operands, strict).body


def _candidates(text: str) -> frozenset[str]:
    """Return the values with an acquire and a release, and "null" if null is an operand."""
    found: dict[str, set[str]] = {"incref": set(), "decref": set()}
    for operation, operand in _REFOP_OPERAND.findall(text):
        found[operation].add(operand)
    pairs = found["incref"] & found["decref"]
    return frozenset(pairs | ({"null"} & (found["incref"] | found["decref"])))


class _Reader:
    """Reads the lines of a function in order."""

    def __init__(self, text: str, operands: frozenset[str], strict: bool) -> None:
        lines = text.split("\n")
        name = re.search(r'@([-\w.$]+|"[^"]*")\(', lines[0])
        self.body = Body(name.group(1) if name else "?", lines)
        self._operands, self._strict = operands, strict
        self._targets: list[list[str]] = []
        self._events: list[Event] = []
        self._ended = True
        self._start_block("")
        for number in range(1, len(lines) - 1):
            self._read_line(number, lines[number])
        self._link()

    def _start_block(self, name: str) -> None:
        self._events = []
        self._ended = False
        self.body.flow.blocks.append(Block(name, self._events))
        self.body.terminators.append(0)
        self._targets.append([])

    def _read_line(self, number: int, line: str) -> None:
        if not line:
            return
        if line[0] != " ":
            self._read_label(line)
        elif self._ended:
            self._targets[-1] += _TARGET.findall(line)
        elif line[:2] == "  " and line[2:3] != " ":
            self._read_instruction(number, line)

    def _read_label(self, line: str) -> None:
        label = _LABEL.match(line)
        if label is None:
            return
        if self._ended or self._events or self.body.terminators[-1]:
            self._start_block("")
        self.body.flow.blocks[-1].name = label.group(1) or label.group(2)

    def _read_instruction(self, number: int, line: str) -> None:
        terminator = _TERMINATOR.match(line)
        if terminator:
            self._end_block(number, line, terminator.group(1))
        else:
            self._add_events(number, line, self._events)

    def _end_block(self, number: int, line: str, opcode: str) -> None:
        block = self.body.flow.blocks[-1]
        self._ended = True
        self.body.terminators[-1] = number
        self.body.is_supported &= opcode not in _UNSUPPORTED
        self._targets[-1] += _TARGET.findall(line)
        block.returns = opcode in ("ret", "resume")
        block.pinned |= opcode == "unreachable"  # a release behind a call without return never runs
        closing: list[Event] = []
        self._add_events(number, line, closing)
        block.closing = tuple(closing)

    def _add_events(self, number: int, line: str, events: list[Event]) -> None:
        refop = _REFOP.match(line) if "@NRT_" in line else None
        if refop:
            self._add_refop(number, refop, events)
            return
        if "call " in line or "invoke " in line:
            self._add_call(number, line, events)
        elif line.startswith("  store "):
            self._add_store(number, line, events)
        if events and events[-1].kind is Kind.RELEASE and any(map(line.__contains__, _ACCESSING)):
            events.append(Event(Kind.ACCESS, None, number))
        definition = _DEFINITION.match(line)
        if definition and definition.group(1) in self._operands:
            events.append(Event(Kind.DEFINE, definition.group(1), number))

    def _add_refop(self, number: int, refop: re.Match[str], events: list[Event]) -> None:
        operation, operand = refop.groups()
        if operand == "null":
            self.body.nulls.append(number)
        elif operation == "decref":
            events.append(Event(Kind.RELEASE, operand, number))
        elif operand in self._operands:
            events.append(Event(Kind.ACQUIRE, operand, number))

    def _add_call(self, number: int, line: str, events: list[Event]) -> None:
        if "musttail " in line:
            self.body.flow.blocks[-1].pinned = True
        releases = "NRT_decref" in line or _CONSUMING.search(line) is not None
        if releases or (self._strict and "@llvm." not in line and "@NRT_incref" not in line):
            events.append(Event(Kind.FENCE, None, number))

    def _add_store(self, number: int, line: str, events: list[Event]) -> None:
        if "!numba_exception_output" in line and " %excinfo," in line:
            events.append(Event(Kind.RAISE, None, number))
        elif _STORE.match(line):  # a caller ignores %retptr after a raise
            self.body.flow.stores = True

    def _link(self) -> None:
        blocks = self.body.flow.blocks
        index_of = {block.name: index for index, block in enumerate(blocks)}
        for block, targets in zip(blocks, self._targets, strict=True):
            names = (target[1:].strip('"') for target in targets)
            block.successors = tuple(dict.fromkeys(index_of[name] for name in names))


def edited(body: Body, plan: Plan) -> tuple[str, int]:
    """Return the text of the function after the edits of a plan, and the number of moved lines."""
    gone = plan.removed.union(body.nulls)
    before: dict[int, list[str]] = {}
    for index in plan.sunk:
        block = body.flow.blocks[index]
        moved = _moved(block, plan.removed)
        if moved:
            before[body.terminators[index]] = [body.lines[number] for number in moved]
            gone.update(moved)
    kept: list[str] = []
    for number, line in enumerate(body.lines):
        kept += before.get(number, ())
        if number not in gone:
            kept.append(line)
    return "\n".join(kept), sum(map(len, before.values()))


def _moved(block: Block, removed: set[int]) -> list[int]:
    """Return the lines of the kept releases with another kept event behind."""
    if block.pinned:
        return []
    events = [event for event in block.events if event.ident not in removed]
    while events and events[-1].kind is Kind.RELEASE:
        events.pop()
    return [event.ident for event in events if event.kind is Kind.RELEASE]
