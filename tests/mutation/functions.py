"""Find the functions of a source text, in C or Python.

The outcome of a mutant stays valid while the text of its function stays the same.
"""

from __future__ import annotations

import ast
import functools
import itertools
import re

END = re.compile(r"^\}.*\n?", re.MULTILINE)  # of a function or type in C, as clang-format leaves it


def spans_of_c(source: str) -> list[tuple[int, int]]:
    """Return the spans from the end of one function to the end of the next."""
    ends = [0, *(end.end() for end in END.finditer(source))]
    return list(itertools.pairwise(ends))


def spans_of_python(source: str) -> list[tuple[int, int]]:
    """Return the spans of functions outside of other functions."""
    starts = [0, *(match.end() for match in re.finditer(r"\n", source)), len(source)]
    found = []
    left: list[ast.AST] = [ast.parse(source)]
    while left:
        node = left.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
            found.append((starts[first - 1], starts[node.end_lineno or first]))
        else:
            left.extend(ast.iter_child_nodes(node))
    return sorted(found)


@functools.cache
def spans(source: str, suffix: str) -> list[tuple[int, int]]:
    return spans_of_python(source) if suffix == ".py" else spans_of_c(source)


def texts(source: str, suffix: str) -> list[str]:
    """Return the text of each function, and last the whole source."""
    return [source[start:end].strip() for start, end in spans(source, suffix)] + [source]


def text_around(source: str, suffix: str, position: int) -> str:
    """Return the text of the function around a position, or the whole source outside of all."""
    for start, end in spans(source, suffix):
        if start <= position < end:
            return source[start:end].strip()
    return source
