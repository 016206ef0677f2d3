"""Accounts of Dask tasks by prefix, in one worker process."""

from __future__ import annotations

import contextlib
import os
import secrets
import threading
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from threading import get_ident
from time import monotonic
from typing import Any, TypeAlias

from memrt import _memrt
from memrt._policy.current_scope import enter_scope, leave_scope
from memrt._policy.policy import Policy
from memrt._policy.scope import Scope, open_scope
from memrt._support.public import public
from memrt._support.units import human_bytes, plural

PROCESS = secrets.token_hex(8)
"""Name of this process. Process ids of several machines may be equal."""
MOST_SLOTS = 64
"""Inner scopes of a prefix: threads above this number share scopes."""
MOST_SCOPES = 2048
"""Scopes of prefixes and their threads: half of the scopes of a process."""
MOST_PREFIXES = 4096
"""Prefixes with figures of their own."""
RETRY = 1.0
"""Seconds until the next attempt, after the process had no room for a scope."""
REST = 50
"""Pause after a failed attempt to enter a scope, as a multiple of its time."""
OTHERS = "other tasks"
"""Row and scope of the tasks without a row or scope of their own."""

_FIGURES = ("tasks", "errors", "failed", "peak", "peak_error", "result", "kept", "temporary")
_Slot: TypeAlias = list[Any]
_run = _memrt.run_task


@public("memrt.dask")
@dataclass(slots=True)
class TaskStats:
    """Memory of all tasks with one prefix. Sizes are in bytes.

    Examples
    --------
    >>> import memrt.dask
    >>> memrt.dask.TaskStats("sum", tasks=2, peak=300, result=100).ratio
    3.0
    """

    prefix: str
    """Start of the keys of the tasks, as in the dashboard of Dask."""
    tasks: int = 0
    """Tasks that ended."""
    errors: int = 0
    """Tasks that ended by an exception."""
    failed: int = 0
    """Requests for memory that were refused."""
    live: int = 0
    """Bytes allocated by the tasks and in use now, mostly results."""
    peak: int = 0
    """Highest bytes in use by one task, without the inputs of the task."""
    peak_error: int = 0
    """Error bound of `peak`, if several threads free memory of the task; 0: exact."""
    result: int = 0
    """Size of the result of the task with the highest peak, an estimate of Dask."""
    kept: int = 0
    """Bytes in use at the ends of the tasks, summed over all tasks."""
    temporary: int = 0
    """Bytes freed before the end of the allocating task, summed over all tasks."""
    key: str = ""
    """Key of the tasks, for figures by key; empty for figures by prefix."""

    @property
    def ratio(self) -> float:
        """Highest peak of a task, divided by the size of the result; 0 without a result."""
        return self.peak / self.result if self.result else 0.0

    def add(self, other: TaskStats) -> None:
        """Add the tasks of another worker.

        Parameters
        ----------
        other : TaskStats
            Figures of the same prefix or key.
        """
        if other.peak > self.peak:
            self.peak, self.peak_error = other.peak, other.peak_error
            self.result = other.result
        for name in ("tasks", "errors", "failed", "live", "kept", "temporary"):
            setattr(self, name, getattr(self, name) + getattr(other, name))

    def __repr__(self) -> str:
        ratio = f", {self.ratio:.1f} times its result" if self.result else ""
        return (
            f"<memrt.dask.TaskStats {self.key or self.prefix!r}: {plural(self.tasks, 'task')}, "
            f"{human_bytes(self.live)} live, peak {human_bytes(self.peak)}{ratio}, "
            f"kept {human_bytes(self.kept)}, temporary {human_bytes(self.temporary)}, "
            f"{plural(self.failed, 'refused request')}>"
        )


class Pool:
    """Scope, and an inner scope for each thread that runs tasks.

    A thread runs one task at a time, so the rise of the inner scope's peak is the peak of the task.
    The peak of a scope is exact while one thread allocates. The scopes are opened at the first use.

    Threads: `idle` and `spare` change by atomic operations, and the rest changes under the lock.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.scope: Scope | None = None
        self.idle: dict[int, _Slot] = {}
        self.spare: list[_Slot] = []
        self.slots = 0

    @property
    def live(self) -> int:
        """Bytes in use; 0 without a scope."""
        return 0 if self.scope is None else self.scope.live

    def take_slot(self) -> _Slot | None:
        """Return a slot for a thread without a slot of its own; None without room for a scope."""
        with contextlib.suppress(IndexError):
            return self.spare.pop()
        slot = self._open_slot() if self.slots < MOST_SLOTS else None
        if slot is None:
            with contextlib.suppress(KeyError):  # other threads take slots, too
                return self.idle.popitem()[1]
        return slot or self._open_slot()

    def _open_slot(self) -> _Slot | None:
        global _opened
        with _lock:
            outer = self._open_outer()
            if outer is None or not self._has_room():
                return None
            inner = _open(outer, f"slot {self.slots + 1}")
            if inner is None:
                return None
            self.slots += 1
            _opened += 1
        return new_slot(inner)

    def open_inner(self, name: str) -> Scope | None:
        """Return a new scope inside of the scope; None without room."""
        with _lock:
            outer = self._open_outer()
            return None if outer is None else _open(outer, scope_name(name))

    def _open_outer(self) -> Scope | None:
        global _opened
        if self.scope is None and self._has_room():
            self.scope = _open(None, scope_name(self.name))
            _opened += self.scope is not None
        return self.scope

    def _has_room(self) -> bool:
        return _opened < MOST_SCOPES or self.name == OTHERS


class Prefix:
    """Account of a prefix, and the scopes of its tasks."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.account = _memrt.TaskAccount()
        self.pool = Pool(name)

    def row(self) -> dict[str, Any]:
        """Return the figures as fields of TaskStats by name."""
        return {"prefix": self.name, "live": self.pool.live, **figures_of(self.account)}


def figures_of(account: _memrt.TaskAccount) -> dict[str, int]:
    """Return the figures of an account by name."""
    return dict(zip(_FIGURES, account.read(), strict=False))


def _open(around: Scope | None, name: str) -> Scope | None:
    """Return a scope, or None without room for more scopes in the process. Under the lock."""
    global _next_attempt
    if monotonic() < _next_attempt:
        return None
    try:
        return open_scope(around, name)
    except RuntimeError:
        _next_attempt = monotonic() + RETRY
        return None


def new_slot(scope: Scope | None) -> _Slot:
    """Return a slot of ``_memrt.run_task``. Tasks of a slot without a scope have no sizes."""

    def enter(policy: Policy) -> bool:
        global _next_entry
        begin = monotonic()
        if scope is not None and begin >= _next_entry:
            try:
                enter_scope(scope, scope)
                policy.__enter__()
                return True
            except MemoryError:  # too many policies, or no memory; the text may take seconds
                leave_scope(scope)
                _next_entry = monotonic() + RETRY + REST * (monotonic() - begin)
        policy.__enter__()
        return False

    return [scope and scope._capsule, enter, None, None, None]


def scope_name(prefix: str) -> str:
    """Return a prefix as the name of a scope: 1 to 63 bytes of UTF-8, without a zero byte."""
    name = prefix.replace("\0", "").encode("utf-8", "replace")[:63].decode("utf-8", "ignore")
    return name or "task"


_lock = threading.Lock()
_prefixes: dict[str, Prefix] = {}
_opened = 0
_next_attempt = 0.0
_next_entry = 0.0


def _recover_after_fork() -> None:
    global _lock
    _lock = threading.Lock()


os.register_at_fork(after_in_child=_recover_after_fork)


def run_task(prefix: str, policy: Policy, function: Callable[..., Any], *arguments: Any) -> Any:
    """Call `function` on the policy, in the scope of the thread, and count the task.

    Returns
    -------
    dict
        Result of the call: "op" is "task-finished" for a success, "nbytes" the size of the result.
    """
    entry = _prefixes.get(prefix) or _add_prefix(prefix)
    pool, thread = entry.pool, get_ident()
    slot = pool.idle.pop(thread, None)
    if slot is None:
        pool, slot = _take_other_slot(pool)
    try:
        return _run(entry.account, slot, policy, free_frames, function, *arguments)
    finally:
        if pool.idle.setdefault(thread, slot) is not slot:  # a task inside of the task was first
            pool.spare.append(slot)


def _take_other_slot(pool: Pool) -> tuple[Pool, _Slot]:
    """Return a slot for a thread without a slot of its own, and the pool that takes the slot back.

    Without room for scopes, the slot belongs to OTHERS, or has no scope.
    """
    slot = pool.take_slot()
    if slot is None:
        pool = find_prefix(OTHERS).pool
        slot = pool.idle.pop(get_ident(), None) or pool.take_slot()
    return (Pool(OTHERS), new_slot(None)) if slot is None else (pool, slot)


def take_slot(pool: Pool) -> tuple[Pool, _Slot]:
    """Return a slot for this thread, and the pool for :func:`put_slot`."""
    slot = pool.idle.pop(get_ident(), None)
    return _take_other_slot(pool) if slot is None else (pool, slot)


def put_slot(pool: Pool, slot: _Slot) -> None:
    """Put a slot back, for the next task of this thread."""
    if pool.idle.setdefault(get_ident(), slot) is not slot:
        pool.spare.append(slot)


def free_frames(message: dict[str, Any]) -> None:
    """Free the variables of a task that failed for lack of memory. The message has texts of them.

    The frames of the task are in reference cycles, which last until a collection of garbage.
    """
    error = message.get("actual_exception")
    while isinstance(error, MemoryError):
        traceback.clear_frames(error.__traceback__)
        error = error.__context__


def find_prefix(prefix: str) -> Prefix:
    """Return the account of a prefix, or of OTHERS above MOST_PREFIXES."""
    return _prefixes.get(prefix) or _add_prefix(prefix)


def _add_prefix(prefix: str) -> Prefix:
    with _lock:
        if len(_prefixes) >= MOST_PREFIXES:
            prefix = OTHERS
        return _prefixes.get(prefix) or _prefixes.setdefault(prefix, Prefix(prefix))


def task_rows() -> list[dict[str, Any]]:
    """Return the accounts of this process, as fields of TaskStats by name."""
    return [entry.row() for entry in list(_prefixes.values())]


def prefix_rows() -> list[tuple[str, int, int, int, bool]]:
    """Return prefix, number of tasks, live bytes, peak, and whether all live bytes may be needed.

    The bytes may be needed while a task runs. Results of many prefixes are in the scope of OTHERS.
    """
    rows = []
    for entry in list(_prefixes.values()):
        tasks, _, _, peak, *_, running = entry.account.read()
        needed = running > 0 or entry.name == OTHERS
        rows.append((entry.name, tasks, entry.pool.live, peak, needed))
    return rows
