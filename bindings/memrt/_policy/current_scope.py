"""Keep a stack of the entered scopes, with a separate stack per context.

Each entry in the stack has an owner, so that scopes may be left in any order. NumPy's handler
follows the current scope.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from memrt import _memrt
from memrt._policy import handlers
from memrt._policy.scope import Scope
from memrt._support.public import public

if TYPE_CHECKING:
    from contextvars import ContextVar


# Entry of an entered scope: owner, scope, capsule, handlers. The owner is the object that entered
# the scope, compared by identity on leaving. The extension reads the capsule, and caches NumPy
# handlers for the scope in the dict, by policy index. The last entry of a context has the current
# scope.
_Entry: TypeAlias = tuple[object, Scope, Any, dict[int, Any]]
_entries: ContextVar[tuple[_Entry, ...]] = _memrt.scope_variable


@public("memrt")
def current_scope() -> Scope | None:
    """Return the current scope of this context.

    Returns
    -------
    memrt.types.Scope or None
        Scope that allocations count for; None outside of scopes.

    Examples
    --------
    >>> import memrt
    >>> with memrt.scope("load"):
    ...     memrt.current_scope().name
    'load'
    >>> memrt.current_scope() is None
    True
    """
    entries = _entries.get()
    return entries[-1][1] if entries else None


def enter_scope(owner: object, entered: Scope) -> None:
    """Make `entered` the current scope of this context, with an entry for `owner`."""
    _set_entries((*_entries.get(), (owner, entered, entered._capsule, entered._handlers)))


def leave_scope(owner: object) -> bool:
    """Remove the last entry of `owner` from this context. Return whether there was an entry."""
    entries = _entries.get()
    for index in range(len(entries) - 1, -1, -1):
        if entries[index][0] is owner:
            _set_entries((*entries[:index], *entries[index + 1 :]))
            return True
    return False


def _set_entries(entries: tuple[_Entry, ...]) -> None:
    """Set the scope entries of this context and the handler for the new scope, or change nothing.

    On failure the old entries are restored and the exception propagates.
    """
    before = _entries.get()
    try:
        _memrt.set_scope_entries(entries)
        handlers.follow_scope()
    except BaseException:
        # The change may raise MemoryError for its token after the variable has changed.
        _memrt.set_scope_entries(before)
        raise
