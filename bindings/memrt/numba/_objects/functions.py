"""Find the functions of a script that a user names, with their signatures."""

from __future__ import annotations

import importlib.util
import os
import sys
from dataclasses import dataclass
from types import FunctionType, ModuleType
from typing import Any

from memrt.numba._objects.errors import ObjectError

_MODULE = "memrt_compiled_script"
KEYWORDS = frozenset(
    """auto bool char const double enum extern float goto inline int long main register restrict
    short signed sizeof static struct switch typedef typename union unsigned using void volatile
    NULL""".split()
)


@dataclass(frozen=True)
class Function:
    """A function to compile, with the types of its arguments.

    `result` is None if Numba infers the type of the result. `options` are the options of the
    decorator.
    """

    name: str
    source: FunctionType
    arguments: tuple[Any, ...]
    result: Any
    options: dict[str, Any]


def load_script(path: str) -> ModuleType:
    """Run a script as a module, and return the module.

    The module is in `sys.modules`, so that Numba pickles the exceptions of the script by name. The
    module has a fixed name, so that a script such as signal.py does not hide a module of Python.

    Raises
    ------
    ObjectError
        If the script does not exist or raises an exception.
    """
    spec = importlib.util.spec_from_file_location(_MODULE, path)
    if spec is None or spec.loader is None or not os.path.isfile(path):
        raise ObjectError(f"script must be a Python file, got {path!r}")
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    sys.modules[_MODULE] = module
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        raise ObjectError(f"cannot run {path!r}: {type(error).__name__}: {error}") from error
    return module


def find_function(module: ModuleType, name: str, signature: str | None) -> Function:
    """Return the function `name` of a module.

    Parameters
    ----------
    signature : str or None
        Signature in Numba's notation. None takes the only signature of the function.

    Raises
    ------
    ObjectError
        If the function does not exist, is not a function of Numba, or has no single signature.
    """
    _expect_c_name(name)
    value = getattr(module, name, None)
    if value is None:
        raise ObjectError(f"function must exist in {module.__file__}, got {name!r}")
    source, options, signatures = _take_apart(name, value)
    arguments, result = _choose_signature(name, signatures, signature)
    return Function(name, source, arguments, result, options)


def _expect_c_name(name: str) -> None:
    if not (name.isascii() and name.isidentifier()) or name in KEYWORDS:
        raise ObjectError(f"function must have a name that C accepts, got {name!r}: rename it")


def _take_apart(
    name: str, value: Any
) -> tuple[FunctionType, dict[str, Any], list[tuple[tuple[Any, ...], Any]]]:
    """Return the Python function, the options and the signatures of an object of Numba."""
    from numba.core.ccallback import CFunc
    from numba.core.dispatcher import Dispatcher

    if isinstance(value, Dispatcher):
        signatures = [(each.args, each.return_type) for each in value.nopython_signatures]
        return value.py_func, value.targetoptions, signatures
    if isinstance(value, CFunc):
        signature = (value._sig.args, value._sig.return_type)
        return value.__wrapped__, value._compiler.targetoptions, [signature]
    if isinstance(value, FunctionType):
        return value, {"nopython": True}, []
    raise ObjectError(f"{name} must be a function, got {type(value).__name__}: decorate with njit")


def _choose_signature(
    name: str, signatures: list[tuple[tuple[Any, ...], Any]], signature: str | None
) -> tuple[tuple[Any, ...], Any]:
    if signature is not None:
        return _parse_signature(signature)
    if len(signatures) != 1:
        raise ObjectError(
            f"{name} must have one signature, got {len(signatures)}: "
            "write one in the decorator, or use --signature"
        )
    return signatures[0]


def _parse_signature(text: str) -> tuple[tuple[Any, ...], Any]:
    from numba.core.sigutils import normalize_signature

    try:
        arguments, result = normalize_signature(text)
    except Exception:  # Numba evaluates the text as Python code, which may raise anything
        raise ObjectError(
            f"signature must be in Numba's notation, got {text!r}: write 'float64(float64[:])'"
        ) from None
    return tuple(arguments), result
