"""Mutation operators for Python: generate small faults from a source text.

Docstrings, annotations, decorators, text of messages, `raise` and `assert` statements and blocks
for type checkers stay unchanged. Each keyword argument is dropped in a mutant of its own: options
without a test are the most frequent fault of the package.

No library has fitting operators: mutmut mutates also texts of messages, and runs tests on a tree of
sources.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from operators import Fault

COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">", ast.Eq: "!=", ast.NotEq: "==",
    ast.Is: "is not", ast.IsNot: "is", ast.In: "not in", ast.NotIn: "in",
}  # fmt: skip
SIGNS: dict[type[ast.cmpop], str] = {
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=",
    ast.Is: "is", ast.IsNot: "is not", ast.In: "in", ast.NotIn: "not in",
}  # fmt: skip
ARITHMETIC: dict[type[ast.operator], tuple[str, str]] = {
    ast.Add: ("+", "-"), ast.Sub: ("-", "+"), ast.Mult: ("*", "//"), ast.Div: ("/", "*"),
    ast.FloorDiv: ("//", "*"), ast.Mod: ("%", "//"), ast.LShift: ("<<", ">>"),
    ast.RShift: (">>", "<<"), ast.BitAnd: ("&", "|"), ast.BitOr: ("|", "&"),
}  # fmt: skip


class Faults:
    """Generator of the faults of a source text."""

    def __init__(self, source: str) -> None:
        self._source = source
        lines = source.splitlines(keepends=True)
        self._starts = [0]
        for line in lines:
            self._starts.append(self._starts[-1] + len(line))
        self._lines = lines

    def all(self) -> Iterator[tuple[Fault, ...]]:
        yield from self._visit(ast.parse(self._source))

    def _at(self, line: int, column: int) -> int:
        """Return the position in the text of a line and a column, which counts bytes."""
        text = self._lines[line - 1] if line <= len(self._lines) else ""
        return self._starts[line - 1] + len(text.encode()[:column].decode())

    def _span(self, node: ast.AST) -> tuple[int, int]:
        assert isinstance(node, (ast.expr, ast.stmt, ast.keyword))
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return (
            self._at(node.lineno, node.col_offset),
            self._at(node.end_lineno, node.end_col_offset),
        )

    def _put(self, start: int, end: int, text: str, what: str) -> tuple[Fault, ...]:
        return (Fault(start, end, text, what),)

    def _between(
        self, left: ast.AST, right: ast.AST, old: str, new: str
    ) -> Iterator[tuple[Fault, ...]]:
        """Yield a fault that replaces the operator between two operands."""
        begin, end = self._span(left)[1], self._span(right)[0]
        at = self._source.find(old, begin, end)
        if at >= 0:
            yield self._put(at, at + len(old), new, f"{old} → {new}")

    # --- Nodes without faults. ---

    def _parts(self, node: ast.AST) -> Iterator[ast.AST]:
        for name, value in ast.iter_fields(node):
            if name in ("annotation", "returns", "decorator_list", "type_comment", "bases"):
                continue
            values = value if isinstance(value, list) else [value]
            yield from (each for each in values if isinstance(each, ast.AST))

    @staticmethod
    def _is_for_types(node: ast.AST) -> bool:
        return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)

    @staticmethod
    def _is_constant(node: ast.AST) -> bool:
        return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)

    def _visit(self, node: ast.AST) -> Iterator[tuple[Fault, ...]]:
        if isinstance(node, (ast.Raise, ast.Assert, ast.JoinedStr, ast.Import, ast.ImportFrom)):
            return
        if self._is_for_types(node) or self._is_constant(node):
            return
        yield from self._of(node)
        for part in self._parts(node):
            yield from self._visit(part)

    # --- Faults of one node. ---

    def _of(self, node: ast.AST) -> Iterator[tuple[Fault, ...]]:
        if isinstance(node, ast.Compare):
            operands = [node.left, *node.comparators]
            for index, sign in enumerate(node.ops):
                kind = type(sign)
                yield from self._between(
                    operands[index], operands[index + 1], SIGNS[kind], COMPARISONS[kind]
                )
        elif isinstance(node, ast.BoolOp):
            old, new = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
            yield from self._between(node.values[0], node.values[1], old, new)
        elif isinstance(node, ast.BinOp) and type(node.op) in ARITHMETIC:
            if not isinstance(node.left, ast.Constant) or not isinstance(node.left.value, str):
                old, new = ARITHMETIC[type(node.op)]
                yield from self._between(node.left, node.right, old, new)
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            start, inner = self._span(node)[0], self._span(node.operand)[0]
            yield self._put(start, inner, "", "not removed")
        elif isinstance(node, ast.Constant):
            yield from self._constant(node)
        elif isinstance(node, ast.Call):
            yield from self._dropped_keywords(node)
        elif isinstance(node, ast.Return) and node.value is not None:
            if not (isinstance(node.value, ast.Constant) and node.value.value is None):
                start, end = self._span(node.value)
                yield self._put(start, end, "None", "returns None")
        elif isinstance(node, ast.AugAssign) or (
            isinstance(node, ast.Expr) and isinstance(node.value, (ast.Call, ast.Await))
        ):
            yield self._removed(node)
        if isinstance(node, (ast.If, ast.IfExp)):
            yield self._negated(node.test)
        if isinstance(node, ast.comprehension):
            yield from (self._negated(test) for test in node.ifs)

    def _constant(self, node: ast.Constant) -> Iterator[tuple[Fault, ...]]:
        start, end = self._span(node)
        value = node.value
        if value is True or value is False:
            yield self._put(start, end, str(not value), f"{value} → {not value}")
        elif type(value) is int:
            for other in (value + 1, value - 1):
                yield self._put(start, end, str(other), f"{value} → {other}")

    def _dropped_keywords(self, node: ast.Call) -> Iterator[tuple[Fault, ...]]:
        everything: list[ast.AST] = sorted(
            [*node.args, *node.keywords], key=lambda each: self._span(each)
        )
        for keyword in node.keywords:
            place = everything.index(keyword)
            start, end = self._span(keyword)
            if place > 0:
                start = self._span(everything[place - 1])[1]
            elif len(everything) > 1:
                end = self._span(everything[1])[0]
            name = keyword.arg if keyword.arg is not None else "**"
            yield self._put(start, end, "", f"argument {name} dropped")

    def _negated(self, test: ast.expr) -> tuple[Fault, ...]:
        start, end = self._span(test)
        what = "condition negated"
        return (Fault(start, start, "not (", what), Fault(end, end, ")", what))

    def _removed(self, node: ast.stmt) -> tuple[Fault, ...]:
        start, end = self._span(node)
        text = " ".join(self._source[start:end].split())
        return self._put(start, end, "pass", f"removed: {text}")


def faults(source: str) -> Iterator[tuple[Fault, ...]]:
    """Yield all mutants of a source text that compile, each as a tuple of faults."""
    from operators import apply

    for mutant in Faults(source).all():
        try:
            compile(apply(source, mutant), "<mutant>", "exec")
        except SyntaxError:
            continue
        yield mutant
