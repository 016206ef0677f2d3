"""Name the referrers of an object: variables, attributes, positions in containers.

The search of the extension returns paths of referring objects. A path runs from the direct referrer
of an object up to a frame, a module, or the end of the search. This module turns each path into
text and a Python expression, such as ``app.CACHE['x']``.

Naming runs no code of the objects of the user's program: see the rules in ``inspection.py``. The
modules ``positions``, ``steps``, ``roots`` and ``paths`` follow the same rules.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from memrt._holders.inspection import is_a, type_name
from memrt._holders.paths import Walker
from memrt._holders.positions import Way
from memrt._holders.roots import Root
from memrt._holders.steps import Step
from memrt._support.public import public

UNKNOWN_PATH = ", without a known path from a variable"


@public("memrt.types")
@dataclass(frozen=True)
class Referrer:
    """Reference from the program to an object that keeps a buffer alive.

    Examples
    --------
    >>> import memrt
    >>> class Cache:
    ...     pass
    >>> Cache.table = memrt.zeros(100)
    >>> [array] = memrt.holders(Cache.table).holders[0].holders
    >>> [referrer.kind for referrer in array.referrers]
    ['attribute']
    """

    kind: str
    """'local', 'global', 'attribute', 'item', 'closure', 'cache', or 'object' for anything else."""
    text: str
    """Description of the referrer and the path from a variable."""
    expression: str | None
    """Python expression for the reference, such as ``app.CACHE['x']``; None if not known."""
    function: str | None
    """Function whose variable leads to the reference."""
    file: str | None
    """Source file of the function."""
    line: int | None
    """Current line of the function."""
    count: int
    """Number of references."""


class Namer:
    """Namer of the references to a set of objects.

    The objects and paths must outlive the namer, because caches use ``id()``.

    Parameters
    ----------
    ways : Iterable[Way]
        Objects, each with a path of referring objects.
    """

    def __init__(self, ways: Iterable[Way]) -> None:
        self._walker = Walker(ways)

    def refer(self, target: object, path: tuple[Any, ...], steps: int, count: int) -> Referrer:
        """Name the reference from the first object of a path to `target`.

        Parameters
        ----------
        path : tuple[Any, ...]
            Objects from the direct referrer of `target` up to a variable or module.
        steps : int
            Length of the whole path; more than ``len(path)`` if the path was cut.
        count : int
            Number of references from the first object.
        """
        taken, root, last = self._walker.walk(target, path, steps)
        expression = _expression(_start_text(root, last), [step.access for step in taken])
        kind = _first_kind(taken, root)
        text = _description(kind, taken, root, expression)
        if root is None:
            return Referrer(kind, text, None, None, None, None, count)
        return Referrer(kind, text, expression, root.function, root.file, root.line, count)

    def shape(self, target: object, path: tuple[Any, ...], steps: int) -> str:
        """Return the text of refer() for groups of similar references.

        The text has no indexes and keys, and the expression is in backticks.
        """
        taken, root, last = self._walker.walk(target, path, steps)
        expression = _expression(_start_text(root, last), [step.shape for step in taken])
        if root is None:
            return f"`{expression}`{UNKNOWN_PATH}"
        if not root.location:
            return f"`{expression}`"
        return (
            f"`{expression}` {root.location}"
            if root.expression or taken
            else f"a value {root.location}"
        )


def _expression(root: str, accesses: list[str]) -> str:
    return root + "".join(reversed(accesses))


def _first_step(taken: list[Step]) -> Step | None:
    """Return the step nearest to the target that adds text to the expression, or None."""
    for step in taken:
        if step.access:
            return step
    return None


def _first_kind(taken: list[Step], root: Root | None) -> str:
    first = _first_step(taken)
    if first is not None:
        return first.kind
    return root.kind if root is not None and root.kind else "object"


def _description(kind: str, taken: list[Step], root: Root | None, expression: str) -> str:
    first = _first_step(taken)
    attribute = ""
    if kind == "attribute" and first is not None:
        attribute = f"attribute `{first.name}` of {_owner_name(first.owner)}"
    if root is None:
        return attribute or f"{expression}{UNKNOWN_PATH}"
    if not root.location:
        return f"{attribute}, {expression}" if attribute else expression
    if not root.expression and not taken:
        return f"a value {root.location}"
    where = f"{'local ' if kind == 'local' else ''}`{expression}` {root.location}"
    return f"{attribute}, {where}" if attribute else where


def _owner_name(owner: object) -> str:
    if is_a(owner, type):
        return f"class {type_name(owner)}"  # type: ignore[arg-type]
    return type_name(type(owner))


def _start_text(root: Root | None, last: object) -> str:
    if root is None:
        return f"<{type_name(type(last))}>"
    return "..." if root.location and not root.expression else root.expression
