"""Make the function that C calls around a compiled function.

The compiled function has Numba's own calling convention: an array is passed as separate scalars,
and an exception is returned as an address. The wrapper takes arrays by address and returns a
status.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba.core import types
from numba.core.callconv import ALLOC_FLAG_IDX, HASH_BUF_IDX, PICKLE_BUF_IDX

from memrt.numba._objects.c_types import is_scalar
from memrt.numba._objects.exceptions import Raised

UNKNOWN = -1  # status for a failure without an exception of the list

_INT32 = ir.IntType(32)
_BYTES = ir.IntType(8).as_pointer()


def add_wrapper(module: Any, cres: Any, name: str, statuses: Callable[[Any, Any], Any]) -> None:
    """Add a function `name` to a module, which calls the compiled function of `cres`.

    Parameters
    ----------
    statuses : callable
        Returns the status of an exception: called with the builder and the address of the
        exception's constant.
    """
    context, kinds, result = cres.target_context, cres.signature.args, cres.signature.return_type
    has_result = result != types.none
    parameters = [_parameter_type(context, each) for each in kinds]
    if has_result:
        parameters.append(_data_type(context, result).as_pointer())
    function = ir.Function(module, ir.FunctionType(_INT32, parameters), name)
    builder = ir.IRBuilder(function.append_basic_block())
    arguments = [_load_argument(context, builder, kind, value)
                 for kind, value in zip(kinds, function.args, strict=False)]  # fmt: skip
    status, value = _call(cres, module, builder, arguments)
    with builder.if_then(status.is_error, likely=False):
        with builder.if_then(status.is_user_exc):
            builder.ret(_take_exception(context, builder, status.excinfoptr, statuses))
        builder.ret(_INT32(UNKNOWN))
    if has_result:
        context.pack_value(builder, result, value, function.args[-1])
    builder.ret(_INT32(0))


def _call(cres: Any, module: Any, builder: Any, arguments: list[Any]) -> tuple[Any, Any]:
    """Call the compiled function by Numba's convention. Return its status and its result."""
    convention, compiled = cres.target_context.call_conv, cres.fndesc
    kind = convention.get_function_type(compiled.restype, compiled.argtypes)
    function = ir.Function(module, kind, compiled.llvm_func_name)
    status, value = convention.call_function(
        builder, function, compiled.restype, compiled.argtypes, arguments
    )
    return status, value


def make_statuses(module: Any, raised: list[Raised], numbers: dict[str, int]) -> Callable[..., Any]:
    """Return a function that compares an address with the constants of the exceptions."""
    constants = []
    for each in raised:
        constant = ir.GlobalVariable(module, ir.IntType(8), each.constant)
        constants.append((constant, numbers[each.name]))

    def compute_status(builder: Any, address: Any) -> Any:
        result = _INT32(UNKNOWN)
        for constant, number in constants:
            result = builder.select(
                builder.icmp_unsigned("==", address, constant), _INT32(number), result
            )
        return result

    return compute_status


def define_unwrap(module: Any, name: str) -> None:
    """Define a function that Numba would use to convert arguments of an exception to Python.

    The name must exist, because compiled code stores the address. Only Python code calls the
    function.
    """
    function = ir.Function(module, ir.FunctionType(_BYTES, [_BYTES]), name)
    ir.IRBuilder(function.append_basic_block()).ret(_BYTES(None))


def _take_exception(
    context: Any, builder: Any, address: Any, statuses: Callable[[Any, Any], Any]
) -> Any:
    """Return the status of an exception, and free the arguments that were computed at run time."""
    info = builder.load(address)
    status = statuses(builder, builder.extract_value(info, PICKLE_BUF_IDX))
    is_allocated = builder.icmp_signed(">", builder.extract_value(info, ALLOC_FLAG_IDX), _INT32(0))
    with builder.if_then(is_allocated):
        context.nrt.free(builder, builder.extract_value(info, HASH_BUF_IDX))
        context.nrt.free(builder, builder.bitcast(address, _BYTES))
    return status


def _data_type(context: Any, kind: Any) -> Any:
    return context.data_model_manager[kind].get_data_type()


def _parameter_type(context: Any, kind: Any) -> Any:
    data = _data_type(context, kind)
    return data if is_scalar(kind) else data.as_pointer()


def _load_argument(context: Any, builder: Any, kind: Any, value: Any) -> Any:
    if is_scalar(kind):
        return context.data_model_manager[kind].from_data(builder, value)
    return context.unpack_value(builder, kind, value)
