"""Run memrt's refcount pruner in Numba, in place of the pass of llvmlite.

Numba prunes modules either by a pass of llvmlite or, with ``NUMBA_LLVM_REFPRUNE_PASS=0``, by the
function ``remove_redundant_nrt_refct`` of the module ``numba.core.codegen``. The hook shows the
setting 0 to the module, and replaces the function. The hook also prunes after the last
optimization, as the pass of llvmlite does. A process that sets ``NUMBA_LLVM_REFPRUNE_PASS=0``
itself keeps Numba's function.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib.abc import Loader
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType
from typing import Any

from memrt.numba.refprune import prune_module

TARGET = "numba.core.codegen"


def put_in_place() -> None:
    """Prune all code that Numba compiles from now on.

    Raises
    ------
    ImportError
        Numba is imported, and has no place for the hook.
    """
    module = sys.modules.get(TARGET)
    if module is not None:
        connect(module)
    elif not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())


def connect(codegen: ModuleType) -> None:
    """Replace the pruning of Numba's module. A second call has no effect.

    Raises
    ------
    ImportError
        The module differs from the versions that memrt is tested with.
    """
    settings: Any = getattr(codegen, "config", None)
    if isinstance(settings, _Settings):
        return
    library: Any = getattr(codegen, "CPUCodeLibrary", None)
    stock = getattr(codegen, "remove_redundant_nrt_refct", None)
    optimize = getattr(library, "_optimize_final_module", None)
    if stock is None or optimize is None or not hasattr(settings, "LLVM_REFPRUNE_PASS"):
        raise ImportError(
            f"{TARGET} must have the interfaces of tested versions of Numba, got another version: "
            "run without refprune=True"
        )
    vars(codegen).update(
        config=_Settings(settings), remove_redundant_nrt_refct=_pruning(settings, stock)
    )
    library._optimize_final_module = _optimizing(settings, optimize)


def _pruning(settings: Any, stock: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def prune_unless_disabled(module: Any) -> Any:
        return prune_module(module) if settings.LLVM_REFPRUNE_PASS else stock(module)

    return prune_unless_disabled


def _optimizing(settings: Any, optimize: Callable[[Any], None]) -> Callable[[Any], None]:
    def optimize_and_prune(library: Any) -> None:
        optimize(library)
        if settings.LLVM_REFPRUNE_PASS:
            library._final_module = prune_module(library._final_module)

    return optimize_and_prune


class _Settings:
    """Numba's settings, with the pass of llvmlite off."""

    LLVM_REFPRUNE_PASS = 0

    def __init__(self, config: Any) -> None:
        self._config = config

    def __getattr__(self, name: str) -> Any:
        return getattr(self._config, name)


class _Finder:
    """Meta-path finder that connects Numba's module after its import."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        if name != TARGET:
            return None
        sys.meta_path.remove(self)
        spec = find_spec(name)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader)
        return spec


class _Loader(Loader):
    def __init__(self, loader: Loader) -> None:
        self._loader = loader

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        self._loader.exec_module(module)
        connect(module)
