"""The handlers that memrt has put in place, one stack for each context.

NumPy keeps its handler in a context variable; so is this stack, and both are inherited and copied
together by tasks, executors and generators. An entry may leave from the middle: the one above it
then inherits the handler to be restored, so that in the end exactly the first one is back.
"""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any

from memrt import _memrt

Handler = Any  # a NEP 49 capsule


@dataclass(frozen=True, slots=True)
class _Entry:
    owner: object  # who entered, by identity
    handler: Handler  # what was put in place, as it is outside of scopes
    before: Handler  # what stood before, likewise
    applied: Handler  # the handler in the scope that it was last put in place in


_stack: ContextVar[tuple[_Entry, ...]] = ContextVar("memrt_handlers", default=())


def handler_of(owner: object) -> Handler | None:
    """The handler that `owner` entered last in this context, or None."""
    index = _find(_stack.get(), owner)
    return None if index is None else _stack.get()[index].handler


def push(owner: object, handler: Handler) -> None:
    """Make `handler` NumPy's in this context, in the name of `owner`."""
    applied = _memrt.in_scope(handler)
    entry = _Entry(owner, handler, _outside_scopes(_memrt.get_handler()), applied)
    _commit((*_stack.get(), entry), applied)
    _memrt.entered(handler)


def pop(owner: object) -> bool:
    """Undo the last push by `owner` in this context; False when there was none."""
    stack = _stack.get()
    index = _find(stack, owner)
    if index is None:
        return False
    entry, above = stack[index], stack[index + 1 :]
    if not above:
        _commit(*_applied(stack[:index], entry.before))
    else:
        _commit((*stack[:index], _inherit(above[0], entry), *above[1:]))
    _memrt.left(entry.handler)
    return True


def follow_scope() -> None:
    """The scope of this context is another: so is the part of the policy in force."""
    stack, present = _stack.get(), _memrt.get_handler()
    if stack and stack[-1].applied is present:
        _commit(*_applied(stack, stack[-1].handler))


def _outside_scopes(present: Handler) -> Handler:
    """The handler that stands here in a form for the scope, as its owner put it in place."""
    stack = _stack.get()
    return stack[-1].handler if stack and stack[-1].applied is present else present


def _applied(stack: tuple[_Entry, ...], handler: Handler) -> tuple[tuple[_Entry, ...], Handler]:
    """The stack and the handler that is to be NumPy's so that `handler` is in force here."""
    if not stack or stack[-1].handler is not handler:
        return stack, handler  # another's
    applied = _memrt.in_scope(handler)
    return (*stack[:-1], replace(stack[-1], applied=applied)), applied


def _find(stack: tuple[_Entry, ...], owner: object) -> int | None:
    for index in range(len(stack) - 1, -1, -1):
        if stack[index].owner is owner:
            return index
    return None


def _inherit(above: _Entry, leaving: _Entry) -> _Entry:
    """What becomes of the entry above one that leaves.

    Another library's handler that was put in between stays what `above` will restore.
    """
    if above.before is leaving.handler:
        return replace(above, before=leaving.before)
    return above


def _commit(stack: tuple[_Entry, ...], handler: Handler | None = None) -> None:
    """Set both the stack and the handler, unless that is None, or neither."""
    before = _stack.get()
    try:
        _stack.set(stack)
        if handler is not None:
            _memrt.set_handler(handler)
    except BaseException:
        _stack.set(before)  # also where it was set, but not the token that says so
        raise
