"""Compile ``with memrt.numba.scratch():`` inside of jitted functions. The module imports Numba.

Numba lifts the body of the block into a function of its own. The code around the block calls the
body through a function that enters the arena before the body, and leaves the arena after the body,
also after an exception.
"""

from __future__ import annotations

import copy
import ctypes
import dis
import itertools
import sys
from types import CodeType, FunctionType
from typing import Any

import llvmlite.ir
import numba
from numba.core import cgutils, errors, ir, types, withcontexts
from numba.core.imputils import impl_ret_new_ref
from numba.core.serialize import NumbaPickler
from numba.core.typing.templates import builtin_registry
from numba.core.typing.typeof import typeof_impl
from numba.extending import intrinsic

from memrt.numba import _finder
from memrt.numba._scratch import scratch

_NAME = "memrt.numba.scratch()"
_CONSTANTS = ir.Const | ir.Global | ir.FreeVar
_ENTER, _LEAVE = "memrt_scratch_enter", "memrt_scratch_leave"
_BLOCK_WORDS = 8  # at least sizeof(memrt_nrt_scratch_block_t)
_OPEN = (1 << 32) - 1


class Record(ctypes.Structure):
    """Arena of compiled blocks: memrt_nrt_scratch_t in bindings/src/numba/scratch.h."""

    _fields_ = (
        ("policy", ctypes.c_void_p),
        ("python_blocks", ctypes.c_void_p),
        ("state", ctypes.c_uint64),
        ("outlived", ctypes.c_uint64),
        ("outlived_bytes", ctypes.c_uint64),
        ("known", ctypes.c_uint64),
    )

    @property
    def is_open(self) -> bool:
        """Whether a compiled block of the arena is open."""
        state: int = self.state
        return state & _OPEN != 0


class _Manager:
    """Context manager of the type of the class and of its instances in jitted code."""

    is_callable = True


_TYPE = types.ContextManager(_Manager())
builtin_registry.register_global(scratch, _TYPE)
typeof_impl.register(scratch)(lambda value, context: _TYPE)

_arenas: dict[object, scratch] = {}  # by place in the source; compiled code has their addresses


def _reduce(arena: scratch) -> tuple[Any, ...]:
    """Return the parts of an arena of compiled blocks for Numba's pickler.

    Numba 0.61 and earlier pickle functions with object mode, and unpickle them in this process.
    """
    if arena not in _arenas.values():
        return arena.__reduce_ex__(2)  # type: ignore[return-value]
    return _find_arena, (id(arena),)


def _find_arena(number: int) -> scratch:
    return {id(arena): arena for arena in _arenas.values()}[number]


NumbaPickler.dispatch_table[scratch] = _reduce


def lift_block(
    arena: scratch | None,
    kind: type[scratch],
    func_ir: Any,
    blocks: dict[int, Any],
    start: int,
    end: int,
    body: list[int],
    dispatcher_factory: Any,
    extra: dict[str, Any] | None,
) -> Any:
    """Replace a block of the IR by a call. Return the dispatcher of the body of the block.

    Numba calls the function as ``mutate_with_body`` of a context manager. `arena` is None for
    ``with memrt.numba.scratch(...):``, whose arguments are in `extra`.
    """
    location = blocks[start].loc
    _expect_compilable(func_ir, blocks, start, body, location)
    chosen = _arena_of(kind, extra, location) if arena is None else arena
    _arenas.setdefault(chosen, chosen)
    made = []

    def make(lifted_ir: Any) -> Any:
        lifted_ir.func_id.func = _copied_function(lifted_ir.func_id.func)
        lifted = dispatcher_factory(lifted_ir)
        if lifted.targetctx.aot_mode:
            raise errors.CompilerError(f"{_NAME} needs Python", loc=location)
        lifted.memrt_caller = _make_caller(lifted, lifted_ir, chosen, location)
        made.append(lifted)
        return lifted.memrt_caller

    withcontexts.call_context.mutate_with_body(func_ir, blocks, start, end, body, make, None)
    return made[0]  # the compiled function keeps the dispatcher, and so the caller


def _copied_function(function: FunctionType) -> FunctionType:
    """Return another object for the body of a block in `function`.

    Numba takes a call of the same object with the same types of arguments for a recursion.
    """
    copied = FunctionType(
        function.__code__, function.__globals__, function.__name__, None, function.__closure__
    )
    copied.__qualname__ = function.__qualname__
    return copied


def _has_try(code: CodeType, offsets: range) -> bool:
    """Return whether a `try` begins in a range of the bytecode. Numba leaves out such a `try`."""
    bytecode = dis.Bytecode(code)
    handlers = {
        each.offset
        for each, after in itertools.pairwise(bytecode)
        if each.opname == "PUSH_EXC_INFO" and after.opname != "WITH_EXCEPT_START"
    }
    entries = getattr(bytecode, "exception_entries", ())
    return any(each.start in offsets and each.target in handlers for each in entries)


def _expect_compilable(
    func_ir: Any, blocks: dict[int, Any], start: int, body: list[int], location: Any
) -> None:
    """Raise CompilerError with the reason why a block cannot be compiled, if there is one."""
    runtime = sys.modules.get(_finder.TARGET)
    inside = [statement for label in body for statement in blocks[label].body]
    values = [each.value for each in inside if isinstance(each, ir.Assign)]
    if not hasattr(runtime, "scratch_policy"):
        problem = f"{_NAME} in jitted code needs memrt.numba.install() before 'import numba'"
    elif any(isinstance(value, ir.Yield) for value in values):
        problem = f"yield must be outside of a block of {_NAME}"
    elif _has_try(func_ir.func_id.code, range(start, max(body) + 1)):
        problem = f"try must be outside of a block of {_NAME}, in a jitted function of its own"
    elif start in body or any(isinstance(each, ir.Return) for each in inside):
        problem = f"break, continue and return must be outside of a block of {_NAME}"
    else:
        return
    raise errors.CompilerError(problem, loc=location)


def _arena_of(kind: type[scratch], extra: dict[str, Any] | None, location: Any) -> scratch:
    """Return the arena of a block: the same one for each compilation of the same source line."""
    given = extra or {"args": [], "kwargs": {}}
    arguments = tuple(_constant(value, location) for value in given["args"])
    options = {name: _constant(value, location) for name, value in given["kwargs"].items()}
    key = (location.filename, location.line, arguments, *sorted(options.items()))
    if key not in _arenas:
        try:
            _arenas[key] = kind(*arguments, **options)
        except (TypeError, ValueError, RuntimeError, MemoryError) as error:
            raise errors.CompilerError(f"{_NAME}: {error}", loc=location) from error
    return _arenas[key]


def _constant(value: Any, location: Any) -> Any:
    if not isinstance(value, _CONSTANTS):
        raise errors.CompilerError(
            f"arguments of {_NAME} in jitted code must be constants, or global or nonlocal "
            "variables",
            loc=location,
        )
    return value.value


def _copied_ir(func_ir: Any) -> Any:
    """Return a deep copy. A compilation changes the IR, and parallel loops compile it twice."""
    copied = func_ir.copy()
    for label, block in func_ir.blocks.items():
        copied.blocks[label].body = [copy.deepcopy(statement) for statement in block.body]
    return copied


def _make_caller(lifted: Any, func_ir: Any, arena: scratch, location: Any) -> Any:
    """Return a jitted function that calls the body of a block in the arena."""
    record = ctypes.addressof(arena._compiled_record())
    refuses = arena._outliving == "error"
    problem = (
        f"arrays of arena {arena.name!r} must be freed before the block ends "
        f"({location.short()}): write results into arrays from before the block, or create the "
        "arena with outliving='promote'"
    )

    @intrinsic  # type: ignore[untyped-decorator]
    def call(typingctx: Any, arguments: Any) -> Any:
        lifted.func_ir = _copied_ir(func_ir)
        body = types.Dispatcher(lifted).get_call_type(typingctx, tuple(arguments), {})

        def emit(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            compiled = lifted.overloads[body.args]
            context.add_linking_libs([compiled.library])
            word, pointer = llvmlite.ir.IntType(64), cgutils.voidptr_t
            room = cgutils.alloca_once(builder, llvmlite.ir.ArrayType(word, _BLOCK_WORDS))
            block = builder.bitcast(room, pointer)
            address = context.add_dynamic_addr(builder, record, info="memrt.numba.scratch")
            _call(builder, llvmlite.ir.VoidType(), _ENTER, block, address)
            status, result = context.call_internal_no_propagate(
                builder, compiled.fndesc, body, cgutils.unpack_tuple(builder, values[0])
            )
            outlives = _call(builder, llvmlite.ir.IntType(32), _LEAVE, block)
            with cgutils.if_unlikely(builder, status.is_error):
                context.call_conv.return_status_propagate(builder, status)
            if refuses:
                with cgutils.if_unlikely(builder, cgutils.is_not_null(builder, outlives)):
                    context.nrt.decref(builder, body.return_type, result)
                    context.call_conv.return_user_exc(builder, RuntimeError, (problem,))
            return impl_ret_new_ref(context, builder, body.return_type, result)

        return body.return_type(arguments), emit

    @numba.njit  # type: ignore[untyped-decorator]
    def run(*arguments: Any) -> Any:
        return call(arguments)

    return run


def _call(builder: Any, returns: Any, name: str, *pointers: Any) -> Any:
    kind = llvmlite.ir.FunctionType(returns, [cgutils.voidptr_t] * len(pointers))
    function = cgutils.get_or_insert_function(builder.module, kind, name)
    return builder.call(function, pointers)
