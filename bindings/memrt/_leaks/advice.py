"""Advice for the holders of buffers: the change of the program that lets the memory go."""

from __future__ import annotations

VIEW = ", through a view"
COPY = "copy the part where the view is stored, by `.copy()` of the view"
_ENTRIES = "remove unused entries, set a limit, or keep weak references"
LOST = "find the missing release, by `python -m memrt leaks --native 8`"

_ADVICE = (
    (VIEW, COPY),
    ("kept by a ", "drop the exception, or set `__traceback__` of the exception to None"),
    ("(a cached result)", "set `maxsize` of the cache, or call `cache_clear()`"),
    ("`)[...]", _ENTRIES),  # a container in a closure variable
    ("(closure variable", "drop the function with the variable, or `del` the variable"),
    ("named reference of C code", "release the named reference in the C code"),
    ("[...]", _ENTRIES),
    (
        "unexplained reference",
        "find the C code with a reference, by `python -m memrt leaks --native 8`",
    ),
    ("`", "`del` the name, or set it to None, after the last use"),
)
"""Parts of the text of a holder, and the advice, in the order of the search."""


def fix_for(holder: str) -> str:
    """Return the advice for a kind of holder, as Survey.describe() names the kind."""
    for part, advice in _ADVICE:
        if part in holder:
            return advice
    return LOST
