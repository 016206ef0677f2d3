"""Remove pairs of reference count calls from LLVM IR that Numba generates.

:func:`prune` deletes calls of ``NRT_incref`` and ``NRT_decref`` that cancel out on every path. The
rules, and the proof that the rules are sound, are in :mod:`memrt.numba.refprune.engine`. llvmlite
parses the input and verifies the output. ``memrt.numba.install(refprune=True)`` prunes all code
that Numba compiles.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Collection
from typing import Any

from memrt.numba.refprune import ir
from memrt.numba.refprune.engine import plan
from memrt.numba.refprune.flow import Flow
from memrt.numba.refprune.report import Kept, PruneStats, add_result, kept_in

__all__ = ["Kept", "PruneStats", "prune"]

PASSES = ("null", "pairs", "sink", "raise")
"""Parts of the pruner. All but `null` need `pairs`."""

MODES = ("premise", "strict")

_UNTYPED_POINTERS = (17,)  # first version of LLVM that reads `ptr` by default

for _result in (Kept, PruneStats):
    _result.__module__ = __name__  # the public name in help texts and pickles


def prune(
    text: str,
    *,
    mode: str = "premise",
    passes: Collection[str] = PASSES,
    explain: bool = False,
) -> tuple[str, PruneStats]:
    """Return LLVM IR without the refcount calls of matching pairs.

    Parameters
    ----------
    text : str
        A module in LLVM IR.
    mode : {"premise", "strict"}, default "premise"
        In "premise" mode no callee releases a reference of the caller, which is Numba's contract.
        In "strict" mode each call may release any reference.
    passes : collection of str, default all
        Parts to run: "null" removes calls on null, "pairs" removes calls that cancel out,
        "sink" may move releases to the end of their blocks, "raise" ignores paths that raise.
    explain : bool, default False
        Whether the statistics list the calls that stay, each with a reason.

    Returns
    -------
    tuple of (str, PruneStats)
        The module as LLVM prints it, and the number of removed calls.

    Raises
    ------
    ImportError
        llvmlite is missing.
    ValueError
        The text is not valid LLVM IR, or a parameter has an unknown value.

    Examples
    --------
    >>> from memrt.numba.refprune import prune
    >>> text, stats = prune('''
    ... declare void @NRT_incref(ptr)
    ... declare void @NRT_decref(ptr)
    ... define void @f(ptr %p) {
    ...   call void @NRT_incref(ptr %p)
    ...   call void @NRT_decref(ptr %p)
    ...   ret void
    ... }''')  # doctest: +SKIP
    >>> stats.removed  # doctest: +SKIP
    2
    """
    _check("mode", [mode], MODES)
    _check("passes", passes, PASSES)
    binding = _binding()
    stats = PruneStats()
    pruned = _prune_text(str(_parsed(binding, text)), mode, passes, explain, stats)
    _parsed(binding, pruned)
    return pruned, stats


def prune_module(module: Any, *, mode: str = "premise", passes: Collection[str] = PASSES) -> Any:
    """Return a module of llvmlite after pruning: the module itself if no call is removed."""
    if not _declares_refops(module):
        return module
    stats = PruneStats()
    pruned = _prune_text(str(module), mode, passes, False, stats)
    if not stats.removed:
        return module
    replaced = _binding().parse_assembly(pruned)
    replaced.name = module.name
    return replaced


def _declares_refops(module: Any) -> bool:
    try:
        module.get_function("NRT_decref")
    except NameError:
        return False
    return True


def _prune_text(
    text: str, mode: str, passes: Collection[str], explain: bool, stats: PruneStats
) -> str:
    parts: list[str] = []
    end = 0
    for function in ir.functions(text):
        body = ir.read(function.group(), strict=mode == "strict")
        if body is None or not body.is_supported:
            continue
        parts += [text[end : function.start()], _prune_body(body, passes, explain, stats)]
        end = function.end()
    return "".join([*parts, text[end:]])


def _prune_body(body: ir.Body, passes: Collection[str], explain: bool, stats: PruneStats) -> str:
    if "null" not in passes:
        body.nulls.clear()
    flow = body.flow if "pairs" in passes else Flow([])
    raises = "raise" in passes
    made = plan(flow, sink="sink" in passes, raises=raises)
    pruned, moved = ir.edited(body, made)
    add_result(stats, body, made, moved)
    if explain:
        stats.kept += kept_in(body, made, raises)
    return pruned


def _check(name: str, values: Collection[str], allowed: tuple[str, ...]) -> None:
    for value in values:
        if value not in allowed:
            raise ValueError(f"{name} must be from {', '.join(allowed)}, got {value!r}")


def _binding() -> Any:
    try:
        return importlib.import_module("llvmlite.binding")
    except ImportError:
        raise ImportError("refprune needs llvmlite: pip install llvmlite, or numba") from None


def _parsed(binding: Any, text: str) -> Any:
    try:
        module = binding.parse_assembly(text)
        module.verify()
    except RuntimeError as error:
        version = binding.llvm_version_info
        if version < _UNTYPED_POINTERS and re.search(r"\bptr\b", text):
            raise ValueError(
                f"text must have typed pointers for LLVM {version[0]}, got 'ptr': install"
                " llvmlite 0.45 and Numba 0.62, or newer versions"
            ) from None
        raise ValueError(f"text must be LLVM IR, got {str(error).strip()}") from None
    return module
