"""Read source code: operations and results of the statement at a line."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import NamedTuple

from memrt._profile.source import source_lines

_OPERATIONS = (ast.BinOp, ast.UnaryOp, ast.Compare, ast.Call)
_METHODS: dict[type[ast.AST], str] = dict(
    zip(
        (
            *(ast.Add, ast.Sub, ast.Mult, ast.MatMult, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow),
            *(ast.BitAnd, ast.BitOr, ast.BitXor, ast.LShift, ast.RShift),
            *(ast.UAdd, ast.USub, ast.Invert),
            *(ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE),
        ),
        "add sub mul matmul truediv floordiv mod pow and or xor lshift rshift pos neg invert "
        "eq ne lt le gt ge".split(),
        strict=True,
    )
)
"""Special methods of operators, without underscores. `ast` has no such table."""
_DISPLAYS = (ast.Tuple, ast.List, ast.Set)
_LOOPS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


class Statement(NamedTuple):
    """A simple statement of the user's code."""

    line: int
    """First line."""
    operations: int
    """Number of operators and calls. Each operator or call may allocate an array."""
    results: int
    """Number of values that the statement keeps."""
    has_operator: bool
    """Whether an operator computes a value."""
    has_loop: bool
    """Whether a comprehension evaluates parts repeatedly."""
    operators: Mapping[str, int] = MappingProxyType({})
    """Number of operators by special method, such as 'mul'."""


@cache
def _statements(file: str) -> tuple[ast.stmt, ...]:
    """Return the simple statements of a file; an empty tuple if the source is unreadable."""
    try:
        tree = ast.parse("".join(source_lines(file)))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ()
    return tuple(
        node for node in ast.walk(tree) if isinstance(node, ast.stmt) and not hasattr(node, "body")
    )


def statement_at(file: str, line: int) -> Statement | None:
    """Return the simple statement at a line, or None if the source has no statement there."""
    for node in _statements(file):
        if node.lineno <= line <= (node.end_lineno or node.lineno):
            return _examined(node)
    return None


def _examined(node: ast.stmt) -> Statement:
    nodes = list(ast.walk(node))
    operations = sum(isinstance(each, _OPERATIONS) for each in nodes)
    value = getattr(node, "value", None)
    if isinstance(node, ast.Expr) and isinstance(value, ast.Call):
        operations -= 1  # the statement drops the value of the outermost call
    results = len(value.elts) if isinstance(value, _DISPLAYS) else 1
    for target in getattr(node, "targets", []):
        results = max(results, len(target.elts) if isinstance(target, _DISPLAYS) else 1)
    return Statement(
        node.lineno,
        operations,
        results,
        any(isinstance(each, ast.BinOp | ast.UnaryOp) for each in nodes),
        any(isinstance(each, _LOOPS) for each in nodes),
        Counter(name for each in nodes if (name := _METHODS.get(type(each)))),
    )
