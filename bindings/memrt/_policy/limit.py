"""Limits and soft limits of live bytes, of the process, policies and scopes."""

from __future__ import annotations

from typing import Any, NamedTuple

from memrt import _memrt
from memrt._policy.limit_amount import check_limits, parse_amount, read_limit
from memrt._policy.live_policies import policies
from memrt._policy.scope_tree import scopes
from memrt._support.public import public


@public("memrt.types")
class Limit(NamedTuple):
    """Limit and soft limit of live bytes, with the bytes that are live now.

    Examples
    --------
    >>> import memrt
    >>> policy = memrt.Policy(name="images", limit="1 MiB")
    >>> [limit for limit in memrt.debug.limits() if "images" in limit.of]
    [Limit(of="policy 'images'", limit=1048576, live=0, held=0, soft=None, rises=0)]
    """

    of: str
    """Object of the limit: "process", "policy 'name'" or "scope 'outer/inner'"."""
    limit: int | None
    """Maximum of live bytes; None: no limit."""
    live: int
    """Live bytes."""
    held: int
    """Bytes that threads hold for their next blocks."""
    soft: int | None
    """Soft limit: memrt frees memory while `live` plus `held` are above; None: no soft limit."""
    rises: int
    """Rises above the soft limit so far."""


@public("memrt")
def limit(amount: int | str | None, *, soft: int | str | None = None) -> int | None:
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
    soft : int, str or None, optional
        Live bytes from which memrt frees memory without refusals, in the same forms. "auto": 90 %
        of the limit, or without a limit, of the amount "auto". A percentage or "auto" stays within
        the limit. None: no soft limit.

    Returns
    -------
    int or None
        Limit in bytes; None: no limit.

    Raises
    ------
    ValueError
        The amount is negative or a text of another form, or the soft limit is above the limit.
    TypeError
        The amount is neither a text nor a whole number.
    RuntimeError
        This build of memrt has no counters.

    Notes
    -----
    A buffer counts with the size of its data. Adopted arrays, GPU memory, and memory that is not
    allocated by memrt do not count. ``MEMRT_LIMIT`` sets the limit for a program from its start.

    When live bytes rise above the soft limit, memrt releases cached memory. Then callbacks of
    ``reclaim_add`` in C run until the use is at most 95 % of the soft limit. If the use is still
    higher, functions of :func:`memrt.on_pressure` run with the level "medium". The next rise counts
    after a fall to 95 %. ``MEMRT_SOFT_LIMIT`` sets the soft limit from the start of a program.

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
    texts = limit_option_text(amount, "limit"), limit_option_text(soft, "soft limit")
    check_limits(*(int(text) if text.isdigit() else None for text in texts))
    before = _options_in_force()
    try:
        _set_options(*texts)
        return read_limit(None)
    except BaseException:  # a soft limit above the limit, or no memory for the number
        _set_options(*before)  # nothing has changed
        raise


def _set_options(limit: str, soft: str) -> None:
    _memrt.set_option("limit", limit)
    _memrt.set_option("soft_limit", soft)


def _options_in_force() -> tuple[str, str]:
    values = {name: value for name, value, _ in _memrt.options()}
    return values["MEMRT_LIMIT"], values["MEMRT_SOFT_LIMIT"]


def limit_option_text(amount: int | str | None, name: str = "limit") -> str:
    """Return an amount of the limit or soft limit of the process as its option contains it."""
    if amount is None:
        return "none"
    if isinstance(amount, str) and (amount.lower() in ("auto", "none") or amount.endswith("%")):
        return amount
    return str(parse_amount(amount, name))


@public("memrt.debug")
def limits() -> list[Limit]:
    """Return the limits and soft limits in force: of the process, of policies, and of scopes.

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
    return [Limit(*row) for row in rows if row[1] is not None or row[4] is not None]
