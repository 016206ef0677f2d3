"""Accounts of Dask tasks by key, for chosen prefixes, in one worker process."""

from __future__ import annotations

import heapq
import os
import threading
from collections.abc import Callable, Iterable
from fnmatch import fnmatchcase
from functools import lru_cache
from itertools import count
from typing import Any

from memrt import _memrt
from memrt._dask.tasks import (
    Pool,
    Prefix,
    figures_of,
    find_prefix,
    free_frames,
    new_slot,
    put_slot,
    take_slot,
)
from memrt._policy.policy import Policy
from memrt._policy.scope import Scope

MOST_KEYS = 1000
"""Keys with figures, and scopes of keys."""
_PEAK = 3  # index of the peak in TaskAccount.read()

patterns: tuple[str, ...] = ()
"""Prefixes of the tasks that have figures by key, with * and ? as in file names."""


def read_patterns(by_key: str | Iterable[str]) -> tuple[str, ...]:
    """Return the option `by_key` as a tuple."""
    found = by_key
    if isinstance(by_key, str):
        found = (by_key,)
    elif isinstance(by_key, Iterable):
        found = tuple(by_key)
    if not isinstance(found, tuple) or not all(isinstance(each, str) for each in found):
        raise TypeError(
            f"by_key must be a prefix of tasks or several, got {by_key!r}: '*' is all tasks"
        )
    return found


def choose(chosen: tuple[str, ...]) -> None:
    """Set the patterns for further tasks. Figures of earlier tasks stay."""
    global patterns
    patterns = chosen


@lru_cache(maxsize=4096)
def is_match(prefix: str, chosen: tuple[str, ...]) -> bool:
    """Return whether a prefix matches a pattern."""
    return any(fnmatchcase(prefix, each) for each in chosen)


class Key:
    """Account of a key, inside the account of the prefix."""

    def __init__(self, key: str, prefix: str, around: Prefix) -> None:
        self.key = key
        self.prefix = prefix
        self.pool = around.pool
        self.account = _memrt.TaskAccount(around.account)
        self.scope: Scope | None = None
        self.is_ranked = False

    @property
    def peak(self) -> int:
        """Highest bytes in use by one task."""
        return self.account.read()[_PEAK]

    @property
    def live(self) -> int:
        """Bytes in use; 0 without a scope."""
        return 0 if self.scope is None else self.scope.live

    def row(self) -> dict[str, Any]:
        """Return the figures as fields of TaskStats by name."""
        figures = figures_of(self.account)
        return {"key": self.key, "prefix": self.prefix, "live": self.live, **figures}


# --- The kept keys. Each key has a task that runs, or is in the ranking. ---

_lock = threading.Lock()
_keys: dict[str, Key] = {}
_ranking: list[tuple[int, int, Key]] = []  # heap of peak, serial number and key
_serial = count()
_opened = 0


def _recover_after_fork() -> None:
    global _lock
    _lock = threading.Lock()


os.register_at_fork(after_in_child=_recover_after_fork)


def run_key(
    key: object, prefix: str, policy: Policy, function: Callable[..., Any], *arguments: Any
) -> Any:
    """Call `function` as :func:`memrt._dask.tasks.run_task` does, and count the task by key, too.

    The task runs in the scope of the key, or without room in the scope of the thread.
    """
    entry = _find_key(str(key), prefix)
    if entry.scope is not None:
        pool, slot = Pool(prefix), new_slot(entry.scope)
    else:
        pool, slot = take_slot(entry.pool)
    try:
        return _memrt.run_task(entry.account, slot, policy, free_frames, function, *arguments)
    finally:
        put_slot(pool, slot)
        _rank(entry)


def _find_key(key: str, prefix: str) -> Key:
    """Return the account of a key. The first MOST_KEYS keys get scopes, which stay in reports."""
    global _opened
    around = find_prefix(prefix)
    with _lock:
        entry = _keys.get(key)
        if entry is None:
            entry = _keys[key] = Key(key, prefix, around)
            if _opened < MOST_KEYS:
                entry.scope = around.pool.open_inner(short_name(key))
                _opened += entry.scope is not None
    return entry


def short_name(key: str) -> str:
    """Return a key as the name of a scope. The end of a long key has the index."""
    data = key.encode("utf-8", "replace")
    if len(data) <= 63:
        return key
    return f"{data[:20].decode('utf-8', 'ignore')}...{data[-40:].decode('utf-8', 'ignore')}"


def _rank(entry: Key) -> None:
    """Keep a key whose task ended, and drop the lowest peaks above MOST_KEYS."""
    with _lock:
        if not entry.is_ranked and _keys.setdefault(entry.key, entry) is entry:
            entry.is_ranked = True
            heapq.heappush(_ranking, (entry.peak, next(_serial), entry))
        while len(_ranking) > MOST_KEYS:
            _drop_lowest()


def _drop_lowest() -> None:
    recorded, serial, entry = _ranking[0]
    if entry.peak > recorded:  # the key ran again
        heapq.heapreplace(_ranking, (entry.peak, serial, entry))
        return
    heapq.heappop(_ranking)
    entry.is_ranked = False
    del _keys[entry.key]


def key_rows() -> list[dict[str, Any]]:
    """Return the accounts of the kept keys, as fields of TaskStats by name."""
    return [entry.row() for entry in list(_keys.values())]


def highest_keys(most: int) -> list[list[Any]]:
    """Return key, number of tasks, live bytes, peak and result of the highest peaks."""
    chosen = heapq.nlargest(most, list(_keys.values()), key=lambda entry: entry.peak)
    names = ("key", "tasks", "live", "peak", "result")
    return [[row[name] for name in names] for row in (entry.row() for entry in chosen)]
