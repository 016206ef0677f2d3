"""LLVM IR of a function of the refcount pruning engine, and the stock pass's result on that IR.

Numba 0.60 and 0.61 have an LLVM before version 17, whose pointers have types."""

from __future__ import annotations

import re
from functools import cache

import llvmlite.binding as llvm
from memrt.numba.refprune.engine import Plan
from memrt.numba.refprune.flow import Block, Event, Flow, Kind

HEAD = """\
declare void @NRT_incref(ptr)
declare void @NRT_decref(ptr)
declare void @use()
declare void @fence()
declare i32 @choose()
"""
FOOT = "!0 = !{i1 true}\n"
HAS_TYPED_POINTERS = llvm.llvm_version_info[0] < 17


def text_of(flow: Flow) -> str:
    """Return a module with one function. Metadata `!event` numbers the refops."""
    blocks = "\n".join(_block_text(flow, block) for block in flow.blocks)
    last = max((event.ident for block in flow.blocks for event in block.all_events()), default=0)
    numbers = "\n".join(f"!{ident + 1} = !{{i32 {ident}}}" for ident in range(last + 1))
    head = "define i32 @main(ptr %p, ptr %q, ptr %r, ptr %excinfo, ptr %slot)"
    return with_types(f"{HEAD}{head} {{\n{blocks}\n}}\n{FOOT}{numbers}\n")


def _block_text(flow: Flow, block: Block) -> str:
    lines = [f"{block.name}:", *(_event_line(event) for event in block.all_events())]
    return "\n".join([*lines, *_terminator(flow, block)])


def _event_line(event: Event) -> str:
    number = f"!event !{event.ident + 1}"
    return {
        Kind.ACQUIRE: f"  call void @NRT_incref(ptr %{event.ref}), {number}",
        Kind.RELEASE: f"  call void @NRT_decref(ptr %{event.ref}), {number}",
        Kind.ACCESS: "  call void @use()",
        Kind.FENCE: "  call void @fence()",
        Kind.RAISE: "  store ptr null, ptr %excinfo, !numba_exception_output !0",
    }[event.kind]


def _terminator(flow: Flow, block: Block) -> list[str]:
    names = [flow.blocks[index].name for index in block.successors]
    if not names:
        return ["  ret i32 0" if block.returns else "  unreachable"]
    cases = " ".join(f"i32 {n}, label %{name}" for n, name in enumerate(names[1:]))
    choice = f"%choice.{block.name}"
    return [f"  {choice} = call i32 @choose()",
            f"  switch i32 {choice}, label %{names[0]} [ {cases} ]"]  # fmt: skip


def with_types(text: str) -> str:
    """Return a module in the syntax of the present LLVM. Pointers become i8*, with casts.

    `%excinfo` becomes i8**, since the pass of llvmlite knows stores of exceptions by this name."""
    if not HAS_TYPED_POINTERS:
        return text
    name = r"@__gxx_personality_v0"
    text = text.replace(f"personality ptr {name}",
                        f"personality i8* bitcast (i32 (...)* {name} to i8*)")  # fmt: skip
    text = text.replace("ptr %excinfo", "i8** %excinfo")
    text = re.sub(r"(load|store) (\w+)([^\n]*), ptr (@\w+)", r"\1 \2\3, \2* \4", text)
    return "\n".join(_typed_line(number, line) for number, line in enumerate(text.split("\n")))


def _typed_line(number: int, line: str) -> str:
    access = re.match(r"(.*\b(?:load|store) (\w+)[^\n]*, )ptr (%\w+)(.*)", line)
    if access is None:
        return re.sub(r"\bptr\b", "i8*", line)
    before, kind, pointer, after = access.groups()
    kind = kind.replace("ptr", "i8*")
    cast = f"  %cast.{number} = bitcast i8* {pointer} to {kind}*"
    return f"{cast}\n" + re.sub(r"\bptr\b", "i8*", before) + f"{kind}* %cast.{number}{after}"


def kept_idents(text: str) -> set[int]:
    """Return the idents of the refops in the text of a module."""
    numbers = dict(re.findall(r"^!(\d+) = !\{i32 (\d+)\}", text, re.MULTILINE))
    return {int(numbers[name]) for name in re.findall(r"!event !(\d+)", text)}


def stock_prune(text: str, flags: int = llvm.RefPruneSubpasses.ALL) -> str:
    """Return a module after llvmlite's pass."""
    module = llvm.parse_assembly(text)
    prune_by_stock(module, flags)
    return str(module)


def prune_by_stock(module, flags: int = llvm.RefPruneSubpasses.ALL) -> None:
    """Run llvmlite's pass on a module."""
    if not hasattr(llvm, "create_new_module_pass_manager"):  # before llvmlite 0.44
        old_manager = llvm.create_module_pass_manager()
        old_manager.add_refprune_pass(flags)
        old_manager.run(module)
        return
    manager = llvm.create_new_module_pass_manager()
    manager.add_refprune_pass(flags)
    manager.run(module, _pass_builder())


@cache
def _pass_builder():
    llvm.initialize_native_target()
    machine = llvm.Target.from_default_triple().create_target_machine()
    return llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=0))


def stock_plan(flow: Flow) -> Plan:
    """Return the edits of llvmlite's pass. The releases of all blocks with an acquire move."""
    idents = {
        event.ident for block in flow.blocks for event in block.events
        if event.kind in (Kind.ACQUIRE, Kind.RELEASE)
    }  # fmt: skip
    normalized = {
        index for index, block in enumerate(flow.blocks)
        if any(event.kind is Kind.ACQUIRE for event in block.events)
    }  # fmt: skip
    return Plan(idents - kept_idents(stock_prune(text_of(flow))), normalized)
