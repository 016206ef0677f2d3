"""Compile functions with Numba into an object file and a header."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from typing import Any, NamedTuple

import llvmlite.binding as llvm
import numba
from numba.core import compiler, types
from numba.core.compiler_lock import global_compiler_lock
from numba.core.errors import NumbaError
from numba.core.registry import cpu_target
from numba.core.runtime import nrtdynmod

from memrt.numba._objects import exceptions, symbols, wrapper
from memrt.numba._objects.c_types import Declarations
from memrt.numba._objects.errors import ObjectError
from memrt.numba._objects.functions import KEYWORDS, Function
from memrt.numba._objects.header import Contents, Prototype, number_classes, write_header

_DYNAMIC = "numba.dynamic.globals"
_UNWRAP = "__excinfo_unwrap_args"


class Output(NamedTuple):
    """The contents of an object file and of its header."""

    code: bytes
    header: str


def build(functions: list[Function], stem: str, source: str, cpu: str) -> Output:
    """Compile functions.

    Parameters
    ----------
    stem : str
        Name of the header without the suffix, a prefix of its names.
    source : str
        Name of the script, for the header.
    cpu : str
        'generic' for any processor of this architecture, 'host' for the processor of this machine.

    Raises
    ------
    ObjectError
        If a function cannot be compiled for a program without Python.
    """
    for function in functions:
        _expect_supported(function)
    with global_compiler_lock:
        library, results = _compile_all(functions, stem, "" if cpu == "generic" else cpu)
        declarations = Declarations()
        prototypes = [_declare(each, results[each.name], declarations) for each in functions]
        raised = exceptions.find_raised(library._final_module)
        numbers = number_classes(raised)
        _add_wrappers(library, results, raised, numbers)
        code = library.emit_native_object()
    symbols.expect_available(code)
    contents = Contents(prototypes, declarations.structs, raised, numbers)
    return Output(code, write_header(stem, source, numba.__version__, contents))


def _compile_all(functions: list[Function], stem: str, cpu: str) -> tuple[Any, dict[str, Any]]:
    """Return a library without code for Python, and the compile results by the functions' names."""
    context = cpu_target.target_context.with_aot_codegen(stem, cpu_name=cpu)
    library = context.codegen().create_library(stem)
    library.add_ir_module(nrtdynmod.create_nrt_module(context)[0])
    results = {each.name: _compile(context, library, each) for each in functions}
    library.finalize()
    _expect_no_addresses(library._final_module)
    _drop_python(library, {each.fndesc.llvm_func_name for each in results.values()})
    return library, results


def _expect_supported(function: Function) -> None:
    if symbols.is_name_of_library(function.name):
        raise ObjectError(
            "function must have another name than the functions of the C library, got "
            f"{function.name!r}: rename it"
        )
    if "objmode" in function.source.__code__.co_names:
        raise ObjectError(f"{function.name} must not use objmode, which needs Python")


def _compile(context: Any, library: Any, function: Function) -> Any:
    """Compile a function into the library, and return Numba's compile result."""
    flags = compiler.Flags()
    cpu_target.options.parse_as_flags(flags, {**function.options, "nopython": True})
    flags.nrt = flags.no_compile = flags.no_cpython_wrapper = flags.no_cfunc_wrapper = True
    try:
        return compiler.compile_extra(
            cpu_target.typing_context, context, function.source, args=function.arguments,
            return_type=function.result, flags=flags, locals={}, library=library,
        )  # fmt: skip
    except NumbaError as error:
        raise ObjectError(f"cannot compile {function.name}: {error}") from error


def _declare(function: Function, cres: Any, declarations: Declarations) -> Prototype:
    """Return the C prototype of a compiled function."""
    arguments = {}
    for name, kind in zip(
        inspect.signature(function.source).parameters, cres.signature.args, strict=True
    ):
        own = f"{name}_" if name in KEYWORDS or name == "result" else name
        arguments[own] = (kind, declarations.declare(kind, f"{function.name}_{name}"))
    kind = cres.signature.return_type
    result = None
    if kind != types.none:
        result = (kind, declarations.declare(kind, f"{function.name}_result"))
    return Prototype(function.name, arguments, result)


def _expect_no_addresses(module: Any) -> None:
    """Refuse code with an address of this process, such as a function of ctypes."""
    if any(each.name.startswith(_DYNAMIC) for each in module.global_variables):
        raise ObjectError(
            "compiled code must not contain addresses of this process, such as global arrays above "
            "1 MB and functions of ctypes: pass the arrays as arguments"
        )


def _drop_python(library: Any, kept: set[str]) -> None:
    """Remove all code that only Python calls, such as Numba's wrappers for Python."""
    module = library._final_module
    helpers = _create_module(library, "unwrap")
    for function in module.functions:
        if not function.is_declaration and function.name.startswith(_UNWRAP):
            function.linkage = "weak_any"  # lets the linker take the definition of `helpers`
            wrapper.define_unwrap(helpers, function.name)
    _link(library, helpers)
    _optimize(library, kept)


def _add_wrappers(
    library: Any,
    results: dict[str, Any],
    raised: list[exceptions.Raised],
    numbers: dict[str, int],
) -> None:
    """Add a function for C around each compiled function. Only these functions are exported."""
    constants = {each.constant for each in raised}
    for variable in library._final_module.global_variables:
        if variable.name in constants:
            variable.linkage = "external"  # the wrappers refer to the name
    module = _create_module(library, "wrappers")
    statuses = wrapper.make_statuses(module, raised, numbers)
    for name, cres in results.items():
        wrapper.add_wrapper(module, cres, name, statuses)
    _link(library, module)
    _optimize(library, results)


def _create_module(library: Any, name: str) -> Any:
    return library.codegen._create_empty_module(name)


def _link(library: Any, module: Any) -> None:
    parsed = llvm.parse_assembly(str(module))
    parsed.verify()
    library._final_module.link_in(parsed)


def _optimize(library: Any, kept: Iterable[str]) -> None:
    """Hide all names except `kept`, and remove hidden code without a caller."""
    names = set(kept)
    module = library._final_module
    for value in (*module.functions, *module.global_variables):
        if not value.is_declaration and value.name not in names and "llvm." not in value.name:
            value.visibility = "default"  # the only visibility of internal names
            value.linkage = "internal"
    library._optimize_final_module()
