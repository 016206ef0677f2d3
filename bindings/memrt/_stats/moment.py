"""Read the statistics of all levels at one moment."""

from __future__ import annotations

from dataclasses import dataclass

from memrt import _memrt
from memrt._stats.snapshot import Stats
from memrt._stats.threads import ThreadStats, from_rows
from memrt._support.public import public
from memrt._support.units import human_bytes, plural

_POLICY, _SCOPE = 2, 3


@public("memrt.types")
@dataclass(frozen=True, slots=True)
class Snapshot:
    """Statistics of the process, all policies, scopes and threads at one moment.

    In each Stats, ``cached`` is 0, and ``reserved`` is without cached bytes.

    Examples
    --------
    >>> import memrt
    >>> snapshot = memrt.debug.snapshot()
    >>> sum(stats.live for stats in snapshot.policies.values()) == snapshot.process.live
    True
    """

    process: Stats
    """Account of the process."""
    policies: dict[tuple[str, int], Stats]
    """Accounts of policies by name and number, as the labels of the metrics."""
    scopes: dict[tuple[str, ...], Stats]
    """Accounts of scopes by path, with their inner scopes."""
    threads: list[ThreadStats]
    """Work of the running threads, in the order of their first use of memrt."""
    nanoseconds: int
    """Time for which allocations of other threads may have waited."""
    generation: int
    """Forks from the process with the first import of memrt. Counters continue in a forked child,
    so only snapshots of one process have a difference."""

    def __repr__(self) -> str:
        policies = f"{len(self.policies)} {'policy' if len(self.policies) == 1 else 'policies'}"
        counts = (plural(len(self.scopes), "scope"), plural(len(self.threads), "thread"))
        live = human_bytes(self.process.live)
        return f"<Snapshot: {live} live, {', '.join((policies, *counts))}>"


@public("memrt.debug")
def snapshot() -> Snapshot:
    """Return the statistics of all levels at one moment.

    Returns
    -------
    memrt.types.Snapshot
        Statistics of the process, of policies, of scopes and of threads.

    Raises
    ------
    RuntimeError
        Other threads changed counters for 50 ms, by frees or by operations on references.

    Notes
    -----
    Threads: allocations and resizes by other threads wait for the end of the call. A thread in the
    middle of an operation may have counted the bytes of one block, and not yet the block.

    Examples
    --------
    >>> import memrt
    >>> with memrt.scope("moment") as scope:
    ...     table = memrt.empty(1000, "u1")
    >>> memrt.debug.snapshot().scopes["moment",].live
    1000
    """
    found = _memrt.snapshot()
    if found is None:
        raise RuntimeError(
            "counters must come to rest within 50 ms, got changes by other threads: call again"
        )
    levels, threads, _, nanoseconds, generation = found
    paths: dict[int, tuple[str, ...]] = {0: ()}
    policies, scopes = {}, {}
    for kind, number, parent, name, figures in levels:
        if kind == _POLICY:
            policies[name, number] = Stats(*figures)
        elif kind == _SCOPE:
            paths[number] = (*paths[parent], name)
            scopes[paths[number]] = Stats(*figures)
    process, rows = Stats(*levels[0][4]), from_rows(threads)
    return Snapshot(process, policies, scopes, rows, nanoseconds, generation)
