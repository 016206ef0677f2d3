"""Limits of live bytes, of the process, policies and scopes."""

from __future__ import annotations

from typing import Any, NamedTuple

from memrt import _memrt
from memrt._policy.limit_amount import parse_amount, read_limit
from memrt._policy.policy import policies
from memrt._policy.scope_tree import scopes
from memrt._support.public import public


@public("memrt.types")
class Limit(NamedTuple):
    """Limit of live bytes, with the bytes that are live now.

    Examples
    --------
    >>> import memrt
    >>> policy = memrt.Policy(name="images", limit="1 MiB")
    >>> [limit for limit in memrt.debug.limits() if "images" in limit.of]
    [Limit(of="policy 'images'", limit=1048576, live=0, held=0)]
    """

    of: str
    """Object of the limit: "process", "policy 'name'" or "scope 'outer/inner'"."""
    limit: int
    """Maximum of live bytes."""
    live: int
    """Live bytes."""
    held: int
    """Bytes that threads hold for their next blocks."""


@public("memrt")
def limit(amount: int | str | None) -> int | None:
    """Limit the live bytes of all arrays and buffers of the process.

    An allocation that would exceed the limit raises MemoryError, before the system ends the process
    without an error. Cached memory is released before live and cached bytes together exceed the
    limit. :class:`memrt.Policy` and :class:`memrt.scope` set limits of their own.

    Parameters
    ----------
    amount : int, str or None
        Maximum in bytes; a text like "2 GiB" or "512M"; "80%": a part of the memory that the system
        allows, which is the lowest of the machine's memory, the control group's limit and the limit
        of the address space; "auto": 90 % of this memory, less resident memory of the process that
        is not memrt's; None or "none": no limit.

    Returns
    -------
    int or None
        Limit in bytes; None: no limit.

    Raises
    ------
    ValueError
        The amount is negative or a text of another form.
    TypeError
        The amount is neither a text nor a whole number.
    RuntimeError
        This build of memrt has no counters.

    Notes
    -----
    A buffer counts with the size of its data. Adopted arrays, GPU memory, and memory that is not
    allocated by memrt do not count. ``MEMRT_LIMIT`` sets the limit for a program from its start.

    Threads: any number of threads stay within the limit. Threads that allocated before the call may
    exceed a new limit once, each by at most 1 MiB.

    Examples
    --------
    >>> import memrt
    >>> memrt.limit("1 GiB")
    1073741824
    >>> memrt.empty(2 << 30, "u1")
    Traceback (most recent call last):
    ...
    memrt.OutOfMemoryError: no memory for 2.0 GiB (2147483648 bytes) of policy 'default'
    ...
    >>> memrt.limit(None)
    """
    text, before = limit_option_text(amount), _option_in_force()
    _memrt.set_option("limit", text)
    try:
        return read_limit(None)
    except BaseException:  # no memory for the number: nothing has changed
        _memrt.set_option("limit", before)
        raise


def _option_in_force() -> str:
    values = {name: value for name, value, _ in _memrt.options()}
    return values["MEMRT_LIMIT"]


def limit_option_text(amount: int | str | None) -> str:
    """Return an amount of the process limit as the option MEMRT_LIMIT would contain."""
    if amount is None:
        return "none"
    if isinstance(amount, str) and (amount.lower() in ("auto", "none") or amount.endswith("%")):
        return amount
    return str(parse_amount(amount))


@public("memrt.debug")
def limits() -> list[Limit]:
    """Return the limits in force: of the process, of policies, and of scopes.

    Returns
    -------
    list of memrt.types.Limit
        Limits of the process first, then of policies, then of scopes, outer scopes first.

    Examples
    --------
    >>> import memrt
    >>> with memrt.scope("load", limit="2 MiB"):
    ...     table = memrt.zeros(1 << 20, "u1")
    ...     limit = memrt.debug.limits()[-1]
    >>> limit.of, limit.limit, limit.live
    ("scope 'load'", 2097152, 1048576)
    """
    named: list[tuple[str, Any]] = [("process", None)]
    named += [(f"policy {policy.name!r}", policy.handler) for policy in policies()]
    named += [(f"scope {'/'.join(scope.path)!r}", scope._capsule) for scope in scopes()]
    rows = ((of, *_memrt.limit_read(what)) for of, what in named)
    return [Limit(*row) for row in rows if row[1] is not None]
