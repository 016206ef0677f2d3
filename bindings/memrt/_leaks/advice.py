"""Advice for the holders of buffers: the change of the program that lets the memory go."""

from __future__ import annotations

VIEW = ", through a view"
COPY = "copy the part where the view is stored, by `.copy()` of the view"
LOST = "find the code that took a reference, by `python -m memrt leaks --native 8`"

_ADVICE = (
    (VIEW, COPY),
    ("kept by a ", "do not keep the exception, or set its `__traceback__` to None"),
    ("(a cached result)", "set `maxsize` of the cache, or call its `cache_clear()`"),
    ("(closure variable", "drop the function that keeps the variable, or `del` the variable"),
    ("named reference of C code", "release the reference in the C code that has the name"),
    ("[...]", "remove entries that are no longer needed, set a limit, or keep weak references"),
    ("unexplained reference", "find the C code that keeps a reference, by `leaks --native 8`"),
    ("`", "`del` the name, or set it to None, after the last use"),
)
"""Parts of the text of a holder, and the advice, in the order of the search."""


def fix_for(holder: str) -> str:
    """Return the advice for a kind of holder, as Survey.describe() names the kind."""
    for part, advice in _ADVICE:
        if part in holder:
            return advice
    return LOST
