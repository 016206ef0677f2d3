"""Keep a stack of the NumPy handlers put in force by memrt, with a separate stack per context.

NumPy keeps its handler in a context variable, and so does this module with the stack. Tasks,
executors and generators therefore inherit and copy handler and stack together. An entry may be
removed from the middle of the stack. The entry above then takes over the handler to restore. After
all entries are removed, exactly the original handler is in force.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from memrt import _memrt

if TYPE_CHECKING:
    from contextvars import ContextVar

Handler = Any  # a NEP 49 capsule


class _Entry(NamedTuple):
    owner: object  # object that entered, compared by identity
    handler: Handler  # handler of the entry, in the form for code outside of scopes
    before: Handler  # previous handler, in the form for code outside of scopes
    applied: Handler  # form of `handler` for the scope where the handler was last set


RESTORED = "restored"
"""Result of pop(): the previous handler, or the handler of a higher entry, is in force."""
OVERRIDDEN = "overridden"
"""Result of pop(): another library's handler was in force, and stays in force."""
NOT_ENTERED = "not entered"
"""Result of pop(): the owner has no entry in this context."""


_stack: ContextVar[tuple[_Entry, ...]] = _memrt.handler_stack_variable


def handler_of(owner: object) -> Handler | None:
    """Return the handler that `owner` entered last in this context, or None."""
    index = _find(_stack.get(), owner)
    return None if index is None else _stack.get()[index].handler


def handler_around(owner: object) -> Handler | None:
    """Return the handler that `owner` replaced first in this context, for the current scope.

    None: `owner` has no entry in this context.
    """
    for entry in _stack.get():
        if entry.owner is owner:
            return _memrt.in_scope(entry.before)
    return None


def handler_below(kind: type) -> Handler | None:
    """Return the handler below the topmost entries, whose owners are of one type.

    None: the last entry in this context has an owner of another type, or there is no entry.
    """
    before = None
    for entry in reversed(_stack.get()):
        if not isinstance(entry.owner, kind):
            break
        before = entry.before
    return None if before is None else _memrt.in_scope(before)


def push(owner: object, handler: Handler) -> None:
    """Set NumPy's handler in this context, and push an entry for `owner`."""
    applied = _memrt.in_scope(handler)
    entry = _Entry(owner, handler, _unscoped_handler(_memrt.get_handler()), applied)
    _commit((*_stack.get(), entry), applied)


def push_below(kind: type, owner: object, handler: Handler) -> bool:
    """Push an entry for `owner` below all entries whose owners have the type `kind`.

    The handler in force stays. False: no owner in this context has the type, nothing was pushed.
    """
    stack = _stack.get()
    for index, above in enumerate(stack):
        if isinstance(above.owner, kind):
            entry = _Entry(owner, handler, above.before, handler)
            _commit((*stack[:index], entry, above._replace(before=handler), *stack[index + 1 :]))
            return True
    return False


def pop(owner: object) -> str:
    """Undo the last push by `owner` in this context. Allocates no memory after the change."""
    stack = _stack.get()
    index = _find(stack, owner)
    if index is None:
        return NOT_ENTERED
    entry, above = stack[index], stack[index + 1 :]
    if above:
        _commit((*stack[:index], _inherit(above[0], entry), *above[1:]))
        return RESTORED
    present = _memrt.get_handler()
    ours = present is entry.applied or present is entry.before or _memrt.is_memrt_handler(present)
    if not ours:
        _commit(stack[:index])
        return OVERRIDDEN
    _commit(*_apply_handler(stack[:index], entry.before))
    return RESTORED


def problem_of(left: str, what: str) -> str:
    """Return the warning for a result of :func:`pop` other than RESTORED, on leaving `what`."""
    if left == NOT_ENTERED:
        return (
            f"{what} was not entered in this context: enter and leave {what} in the same thread, "
            "task or context"
        )
    return (
        f"handler {_memrt.handler_name()!r} of another library stays in force after {what} was "
        f"left: remove the handler of the other library before leaving {what}"
    )


def follow_scope() -> None:
    """Switch NumPy's handler to the current scope, after the scope of this context has changed.

    Each policy has a separate handler for each scope. A handler of another library stays.
    """
    stack, present = _stack.get(), _memrt.get_handler()
    if stack and stack[-1].applied is present:
        _commit(*_apply_handler(stack, stack[-1].handler))


def _unscoped_handler(present: Handler) -> Handler:
    """Return `present` in the form for code outside of scopes."""
    stack = _stack.get()
    return stack[-1].handler if stack and stack[-1].applied is present else present


def _apply_handler(
    stack: tuple[_Entry, ...], handler: Handler
) -> tuple[tuple[_Entry, ...], Handler]:
    """Return the stack and the NumPy handler that put `handler` in force in the current scope."""
    if not stack or stack[-1].handler is not handler:
        return stack, handler  # a handler that memrt did not push
    applied = _memrt.in_scope(handler)
    return (*stack[:-1], stack[-1]._replace(applied=applied)), applied


def _find(stack: tuple[_Entry, ...], owner: object) -> int | None:
    for index in range(len(stack) - 1, -1, -1):
        if stack[index].owner is owner:
            return index
    return None


def _inherit(above: _Entry, leaving: _Entry) -> _Entry:
    """Return the entry `above` after removal of the entry below, `leaving`.

    If another library put a handler in force between the two, `above` still restores that handler.
    """
    if above.before is leaving.handler:
        return above._replace(before=leaving.before)
    return above


def _commit(stack: tuple[_Entry, ...], handler: Handler | None = None) -> None:
    """Set the stack, and the handler unless None, or change nothing.

    On failure the old stack is restored and the exception propagates.
    """
    before = _stack.get()
    try:
        _stack.set(stack)
        if handler is not None:
            _memrt.set_handler(handler)
    except BaseException:
        _stack.set(before)  # the first set() may change the variable and then fail for its token
        raise
