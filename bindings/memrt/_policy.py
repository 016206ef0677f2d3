"""Policies: where NumPy's memory comes from, and its account."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from memrt import _handlers, _memrt
from memrt._options import option_text

if TYPE_CHECKING:
    from memrt._stats import Stats

# One object for each live policy, so that equal means identical.
_known: WeakValueDictionary[int, Policy] = WeakValueDictionary()


_LIMITS = ("cache_limit", "decay", "hugepages")


def _limit_text(option: str, value: int | str | None) -> str | None:
    return None if value is None else option_text(option, value)


def _own_text(option: tuple[str, str]) -> str:
    return f", {option[0].removeprefix('MEMRT_').lower()} {option[1]}"


class Policy:
    """Settings for memory, with an account of its own; a context manager.

    Inside ``with policy:`` the arrays that NumPy allocates in this context come from it. Leaving
    restores exactly the handler that stood before, in whatever order policies are left. A policy
    may be entered many times, nested, and by several threads and tasks at once. Arrays keep their
    policy's memory and handler alive; copies and results of operations follow the policy in force
    where they are made.

    Scope: the current context. Tasks started inside inherit it, threads do not: give an executor
    ``initializer=policy.__enter__``, or use :func:`memrt.enable`.

    Args:
        alignment: of every data pointer, in bytes; a power of two up to 2**30, in effect at least
            64. None for the default of the process.
        name: for reports, at most 63 bytes.
        cache_limit: most bytes of its freed blocks above 1 MiB to keep for reuse, as a number, a
            text like "256M", or "none".
        decay: milliseconds after which these go back to the system; 0 for at once, or "never".
        hugepages: "off", "advise" or "large"; which of these blocks are to have huge pages.
        pinned: take memory whose place is fixed, so that CUDA devices copy from and to it directly;
            each block is a call of the CUDA driver. Not with a limit, for nothing is kept.

    A limit that is None is that of the process at any time: see :func:`memrt.set_option`. A policy
    that sets one keeps its large blocks by itself, and when nobody holds it any more keeps none.

    Raises:
        ValueError: for a bad alignment, name or limit, or a limit of pinned memory.
        memrt.cuda.CudaError: for pinned memory where there is no CUDA driver.
        TypeError: for a limit that is no text and no whole number.
        MemoryError: when there is no memory for it.
        RuntimeError: when 4095 policies are live.
    """

    __slots__ = ("__weakref__", "_alignment", "_handler", "_index", "_name", "_options")

    def __init__(
        self,
        alignment: int | None = 64,
        name: str = "policy",
        *,
        cache_limit: int | str | None = None,
        decay: int | str | None = None,
        hugepages: str | None = None,
        pinned: bool = False,
    ) -> None:
        most, time, huge = map(_limit_text, _LIMITS, (cache_limit, decay, hugepages))
        if pinned and (most, time, huge) != (None, None, None):
            raise ValueError("a pinned policy keeps no memory for reuse: it has no limits")
        self._take(_memrt.policy_new(name, alignment, most, time, huge, pinned))

    def _take(self, handler: _handlers.Handler) -> None:
        self._handler = handler
        self._name, self._alignment, self._index, self._options = _memrt.policy_info(handler)
        _known[self._index] = self

    @classmethod
    def _over(cls, handler: _handlers.Handler) -> Policy:
        """The object for the policy that `handler` leads to."""
        known = _known.get(_memrt.policy_info(handler)[2])
        if known is not None:
            return known
        policy = cls.__new__(cls)
        policy._take(handler)
        return policy

    @property
    def name(self) -> str:
        """Its name in reports."""
        return self._name

    @property
    def alignment(self) -> int:
        """Alignment of its data pointers, in bytes."""
        return self._alignment

    @property
    def options(self) -> dict[str, str]:
        """The options that it sets for itself, by the names that ``memrt.options()`` shows."""
        return dict(self._options)

    @property
    def handler(self) -> _handlers.Handler:
        """The NEP 49 handler, a capsule named "mem_handler"; the same one every time."""
        return self._handler

    def stats(self) -> Stats:
        """Its account now; the same as ``memrt.stats(policy)``."""
        from memrt._stats import stats

        return stats(self)

    def __enter__(self) -> Policy:
        _handlers.push(self, self._handler)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None = None,
        error: BaseException | None = None,
        traceback: TracebackType | None = None,
    ) -> None:
        if not _handlers.pop(self):
            raise RuntimeError(
                f"policy {self._name!r} was not entered in this context: leave it in the thread, "
                "task or context where it was entered"
            )

    def __repr__(self) -> str:
        own = "".join(map(_own_text, self._options))
        return f"<memrt.Policy {self._name!r}, alignment {self._alignment}{own}>"


def default_policy() -> Policy:
    """The policy that everything without one uses; it never dies."""
    return Policy._over(_memrt.default_handler())


def policies() -> list[Policy]:
    """All live policies, the default one first."""
    return [Policy._over(handler) for _, handler in _memrt.policies()]


_default = default_policy()  # kept, so that it is the same object every time
