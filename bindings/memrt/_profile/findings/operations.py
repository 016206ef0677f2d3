"""Attribute the buffers of a statement to operations: the arrays of user code at one moment.

User code cannot change the number of arrays inside a call of a library. A call counts as one array,
the result. Operators of a library in Python count like operators of NumPy.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from memrt._profile.findings.statements import Statement
from memrt._tracking.sites import Site
from memrt._tracking.user_code import library_calls

SIMILAR = 0.25
"""Least mean size of counted arrays, as a part of the largest mean of the statement."""


class Arrays(NamedTuple):
    """Arrays of one site, or of one operation."""

    site: Site
    buffers: float
    nbytes: float

    @property
    def mean(self) -> float:
        return self.nbytes / self.buffers


class _Operation(NamedTuple):
    """Part of a statement with allocations."""

    kind: str
    """'line': the statement without a call of Python code; 'operator'; or 'call'."""
    key: object
    most: float
    """Most results at once."""


def sum_of(arrays: Iterable[Arrays]) -> Arrays:
    """Return the sum of arrays at the largest site, without small arrays."""
    found = list(arrays)
    least = SIMILAR * max(each.mean for each in found)
    large = [each for each in found if each.mean >= least]
    site = max(large, key=lambda each: each.nbytes).site
    return Arrays(site, sum(each.buffers for each in large), sum(each.nbytes for each in large))


def results_of(statement: Statement, arrays: Sequence[Arrays]) -> Arrays | None:
    """Return the results of operations among the arrays of a statement; None without results.

    Results of calls count only beside results of operators.
    """
    operations: defaultdict[_Operation, list[Arrays]] = defaultdict(list)
    for each in arrays:
        operations[_operation_of(each.site, statement)].append(each)
    found = []
    for operation, members in operations.items():
        largest = max(members, key=lambda each: each.mean)
        count = min(sum(each.buffers for each in members), operation.most)
        found.append((operation.kind, Arrays(largest.site, count, count * largest.mean)))
    kinds = {kind for kind, _ in found}
    has_computed = "operator" in kinds or ("line" in kinds and statement.has_operator)
    counted = [each for kind, each in found if kind != "call" or has_computed]
    return sum_of(counted) if counted else None


def _operation_of(site: Site, statement: Statement) -> _Operation:
    calls = library_calls(site.frames)
    if not calls:
        return _Operation("line", site.number, float("inf"))
    for call in reversed(calls):
        name = _operator_name(call.function or "", statement)
        if name:
            return _Operation("operator", name, statement.operators[name])
    return _Operation("call", (calls[-1].file, calls[-1].function), 1)


def _operator_name(function: str, statement: Statement) -> str:
    """Return the operator of a statement by the name of a special method, or ''."""
    method = function.rpartition(".")[2]
    name = method.strip("_")
    if method != f"__{name}__":
        return ""
    for operator in (name, name[1:]):  # such as 'mul', 'rmul' and 'imul'
        if operator in statement.operators:
            return operator
    return ""
