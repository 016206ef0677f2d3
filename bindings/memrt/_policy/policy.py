"""Choose the allocator of NumPy's memory, with an account for each policy."""

from __future__ import annotations

from collections.abc import Iterator
from os import PathLike
from types import TracebackType
from typing import Literal, NoReturn
from weakref import ref

from memrt import _memrt
from memrt._allocators.allocator_source import choose_source
from memrt._policy import handlers
from memrt._policy.limit_amount import (
    check_limits,
    limit_text,
    parse_amount,
    read_limit,
    read_soft_limit,
    set_limit,
    set_soft_limit,
)
from memrt._policy.resetting import Resettable
from memrt._policy.settings import ALL, described, fixed_error, guard_text, setting_text
from memrt._stats.sizes import sizes as read_sizes
from memrt._stats.snapshot import Stats, main_figures
from memrt._stats.snapshot import stats as read_stats
from memrt._support.html_table import html_table
from memrt._support.leaving import end_block
from memrt._support.public import public
from memrt._support.units import human_bytes

# One object for each live policy, so that equality means identity. An entry with a dead reference
# stays until another policy gets the same index. The dict has at most 4096 entries.
_known: dict[int, ref[Policy]] = {}

_SETTINGS = ("cache_limit", "decay", "hugepages")


@public("memrt")
class Policy(Resettable):
    """Allocator settings with an account of their own; a context manager.

    Inside ``with policy:`` the arrays that NumPy allocates in this context come from the policy.
    Leaving restores exactly the previous handler, in whatever order policies are left. Copies and
    results of operations use the policy in force at their creation.

    Parameters
    ----------
    alignment : int or None, default 64
        Alignment of every data pointer in bytes: a power of two up to 2**30, in effect at least 64,
        except 16. 16: NumPy's arrays begin at 16 modulo 64, as large arrays of malloc do. None: the
        default of the process.
    name : str, default 'policy'
        Name in reports, at most 63 bytes in UTF-8.
    cache_limit : int or str, optional
        Maximum bytes of freed blocks above 1 MiB to keep for reuse: a number, a text like "256M",
        or "none".
    decay : int or str, optional
        Milliseconds until such blocks go back to the system; 0: at once; or "never".
    hugepages : {'off', 'advise', 'large'}, optional
        Blocks above 1 MiB that get huge pages.
    guard : int or str, optional
        Arrays that lie between pages without access, so that a write past the end is reported where
        it happens: "all", or the average bytes between such arrays, a number or a text like "64M";
        0: none. See the guide's page on crashes by writes past the end.
    pinned : bool, default False
        Whether to allocate page-locked memory, so that CUDA devices copy from and to the memory
        directly. A pinned policy accepts no settings for cached blocks, huge pages and guard pages.
    allocator : object, optional
        Source of the memory, in a form of the guide's page on allocators in Python: a pair of
        functions ``(allocate, free)``, an object with both as methods, a callable that returns
        buffers, a text ``"./arena.so:symbol"``, or a capsule, pointer or pair of C functions.
        ``allocate(nbytes, alignment)`` returns an address or a writable buffer, and ``free(address,
        nbytes)`` takes the memory back. None: memrt's allocator.
    limit : int or str, optional
        Maximum of live bytes: a whole number, or a text like "2 GiB" or "512M". A larger total is
        refused with MemoryError, see :func:`memrt.limit`. None: no limit.
    soft : int or str, optional
        Live bytes from which memrt frees memory without refusals: a number or text like `limit`, at
        most the limit. None: no soft limit.
    pages : str, optional
        Kinds of pages to try in turn, such as ``"1G,2M,thp,4K"``: "1G" and "2M" from the system's
        pool, "thp" transparent huge pages, "4K" small pages. ``!`` at the end: the last kind only,
        or MemoryError. None: as `MEMRT_HUGEPAGES`.
    node : int or str, optional
        NUMA node of the arrays. A number: this node, and others once it is full. ``"1!"`` or
        ``"0,1!"``: only these nodes. ``"0,1!home:1"``: node 1 first. ``"interleave:0,1"``: pages in
        turn. ``"weighted:0,1"``: in turn by the system's weights. ``"split:3:1"``: three quarters
        on node 0, the rest on node 1. ``"local"``: the node of the thread that makes the array.
        None: as the system decides.
    lock : bool or 'try', default False
        Whether the system never moves the arrays to swap space. True: MemoryError beyond the limit
        of locked memory (``ulimit -l``). "try": then without the lock.
    prefault : bool or int, default False
        Whether all pages have memory from the start. A number: given by so many threads.
    file : str or os.PathLike, optional
        Folder for the contents of arrays, in files without names: for arrays larger than memory.
        MemoryError where the file system is full. See the guide's page on arrays in files.
    memfd : bool, default False
        Whether the contents of arrays lie in such files in memory.

    Raises
    ------
    ValueError
        An alignment, name, setting, limit or allocator is bad, or a pinned policy or a policy with
        an allocator has settings.
    memrt.cuda.CudaError
        Pinned memory was requested and no CUDA driver is available.
    TypeError
        A setting or limit is neither a text nor a whole number, or `allocator` has no known form.
    OSError
        The library of the allocator cannot be loaded, or `file` is no folder for new files.
    MemoryError
        The allocation of the policy failed.
    RuntimeError
        4095 policies are live.

    Warns
    -----
    RuntimeWarning
        On leaving: another library has put a handler in force inside, which stays in force; or the
        policy was not entered in this context. The warning never replaces a pending exception.

    Notes
    -----
    Ownership: an array keeps the memory and the handler of its policy alive. A policy has one
    Python object: :func:`memrt.debug.policies`, ``copy.copy`` and ``copy.deepcopy`` return the same
    object. A policy cannot be pickled.

    Threads: several threads and tasks may enter a policy at once, also repeatedly and nested. Tasks
    started inside inherit the policy. Threads inherit it if ``sys.flags.thread_inherit_context`` is
    1, the default of free-threaded Python 3.14. For other threads, give an executor
    ``initializer=policy.__enter__``, or use :func:`memrt.enable`.

    A policy holds its allocator until the last block is freed. Python functions run with the GIL:
    an allocation without the GIL waits for the GIL, and a free without the GIL is queued.

    The properties `cache_limit`, `decay`, `hugepages` and `guard` change the settings of a live
    policy, also while other threads allocate. A policy that was created without any of the first
    three shares the cache of the process: a change of these raises TypeError. A policy with an
    allocator has no settings. Name, alignment and allocator are fixed.

    A setting that is None follows the option of the process at any time: see
    :func:`memrt.set_option`. A policy with such settings caches its large blocks separately.
    Such a policy caches nothing after the last reference to the policy is gone.

    Examples
    --------
    >>> import memrt
    >>> import numpy as np
    >>> with memrt.Policy(alignment=4096, name="images") as policy:
    ...     image = np.zeros((100, 100))
    >>> image.ctypes.data % 4096, policy.stats().live
    (0, 80000)
    """

    __slots__ = ("__weakref__", "_alignment", "_handler", "_index", "_name")

    _kind = "policy"
    _pickle_advice = "create a policy in the other process"

    _alignment: int
    _handler: object  # a NEP 49 capsule
    _index: int
    _name: str

    def __new__(
        cls,
        alignment: int | None = 64,
        name: str = "policy",
        *,
        cache_limit: int | str | None = None,
        decay: int | str | None = None,
        hugepages: str | None = None,
        guard: int | str | None = None,
        pinned: bool = False,
        allocator: object = None,
        limit: int | str | None = None,
        soft: int | str | None = None,
        pages: str | None = None,
        node: int | str | None = None,
        lock: Literal["try"] | bool = False,
        prefault: bool | int = False,
        file: str | PathLike[str] | None = None,
        memfd: bool = False,
    ) -> Policy:
        limit_bytes = None if limit is None else parse_amount(limit)
        soft_bytes = None if soft is None else parse_amount(soft, "soft limit")
        check_limits(limit_bytes, soft_bytes)
        cache, delay, huge = map(setting_text, _SETTINGS, (cache_limit, decay, hugepages))
        guarded = guard_text(guard)
        settings = (cache, delay, huge, guarded)
        placement = (pages, node, lock, prefault)
        if alignment == 16 and (file is not None or memfd):
            raise ValueError("alignment must not be 16 for a policy with a file or memfd")
        has_settings = settings != (None,) * 4
        source = choose_source(allocator, pinned, has_settings, placement, (file, memfd))
        handler = _memrt.policy_new(name, alignment, cache, delay, huge, pinned, source, guarded)
        if limit_bytes is not None:
            set_limit(handler, limit_bytes)
        if soft_bytes is not None:
            set_soft_limit(handler, soft_bytes)
        return cls._from_handler(handler)

    @classmethod
    def _from_handler(cls, handler: handlers.Handler) -> Policy:
        """Return the Policy object for the policy of `handler`."""
        policy = object.__new__(cls)
        policy._handler = handler
        policy._name, policy._alignment, policy._index, _ = _memrt.policy_info(handler)
        return _memrt.one_object(_known, policy._index, policy)

    @property
    def name(self) -> str:
        """Name of the policy in reports."""
        return self._name

    @name.setter
    def name(self, name: NoReturn) -> None:
        raise fixed_error("name", "traces and reports have the name")

    @property
    def alignment(self) -> int:
        """Alignment of the policy's data pointers, in bytes."""
        return self._alignment

    @alignment.setter
    def alignment(self, alignment: NoReturn) -> None:
        raise fixed_error("alignment", "live blocks have the alignment")

    @property
    def options(self) -> dict[str, str]:
        """Options that the policy sets for itself, by the names of ``memrt.debug.options()``."""
        return dict(self._own_options())

    def _own_options(self) -> tuple[tuple[str, str], ...]:
        return _memrt.policy_info(self._handler)[3]

    def _set_option(self, setting: str, text: str | None) -> None:
        _memrt.policy_option_set(self._handler, setting, text)

    @property
    def cache_limit(self) -> str | None:
        """Maximum bytes of freed blocks above 1 MiB to keep, or None; settable, also to a number.

        Cached memory follows a change at once. None: as the process. Only a policy that was created
        with `cache_limit`, `decay` or `hugepages` has these settings; see :class:`memrt.Policy`.
        """
        return self.options.get("MEMRT_CACHE_LIMIT")

    @cache_limit.setter
    def cache_limit(self, amount: int | str | None) -> None:
        self._set_option("cache_limit", setting_text("cache_limit", amount))

    @property
    def decay(self) -> str | None:
        """Milliseconds until cached memory goes back, or None; settable as `cache_limit`."""
        return self.options.get("MEMRT_DECAY")

    @decay.setter
    def decay(self, milliseconds: int | str | None) -> None:
        self._set_option("decay", setting_text("decay", milliseconds))

    @property
    def hugepages(self) -> str | None:
        """Blocks that get huge pages, or None; settable as `cache_limit`, for later blocks."""
        return self.options.get("MEMRT_HUGEPAGES")

    @hugepages.setter
    def hugepages(self, mode: str | None) -> None:
        self._set_option("hugepages", setting_text("hugepages", mode))

    @property
    def guard(self) -> str | None:
        """Arrays between pages without access, "all" or a mean in bytes, or None; settable.

        A change applies to later arrays of a policy with memrt's allocator, also of
        :func:`memrt.debug.default_policy`.
        """
        mean = self.options.get("MEMRT_GUARD_SAMPLE")
        return "all" if mean == ALL else mean

    @guard.setter
    def guard(self, guard: int | str | None) -> None:
        self._set_option("guard_sample", guard_text(guard))

    @property
    def limit(self) -> int | None:
        """Maximum of live bytes, or None without a limit; settable, also to a text."""
        return read_limit(self._handler)

    @limit.setter
    def limit(self, amount: int | str | None) -> None:
        set_limit(self._handler, amount)

    @property
    def soft_limit(self) -> int | None:
        """Live bytes from which memrt frees memory, or None; settable, also to a text."""
        return read_soft_limit(self._handler)

    @soft_limit.setter
    def soft_limit(self, amount: int | str | None) -> None:
        set_soft_limit(self._handler, amount)

    @property
    def handler(self) -> handlers.Handler:
        """NEP 49 handler, a capsule named "mem_handler"; the same object every time."""
        return self._handler

    def stats(self) -> Stats:
        """Return the current statistics of the policy, as ``memrt.stats(policy)`` does.

        Returns
        -------
        memrt.types.Stats
            Snapshot of the account.
        """
        return read_stats(self)

    def sizes(self, *, live: bool = False) -> dict[int, int]:
        """Return the number of blocks by size, as ``memrt.debug.sizes(policy)`` does.

        Parameters
        ----------
        live : bool, optional
            Count the blocks that are not freed, in place of all blocks allocated so far.

        Returns
        -------
        dict of int to int
            Counts by upper bound: key k counts blocks of at least k/2 and fewer than k bytes.
        """
        return read_sizes(self, live=live)

    def __enter__(self) -> Policy:
        handlers.push(self, self._handler)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None = None,
        error: BaseException | None = None,
        traceback: TracebackType | None = None,
    ) -> None:
        end_block(kind, self._leave)

    def _leave(self) -> str | None:
        left = handlers.pop(self)
        if left == handlers.RESTORED:
            return None
        return handlers.problem_of(left, f"policy {self._name!r}")

    def __repr__(self) -> str:
        settings = "".join(map(described, self._own_options()))
        limits = limit_text(self._handler)
        kind = type(self).__name__
        return f"<memrt.{kind} {self._name!r}, alignment {self._alignment}{settings}{limits}>"

    def _repr_html_(self) -> str:
        """Return settings and main figures as an HTML table, for notebooks."""
        limit = self.limit
        rows = [("alignment", str(self._alignment)), *self._own_options()]
        rows += [] if limit is None else [("limit", human_bytes(limit))]
        figures = main_figures(self.stats()).items()
        title = f"memrt.{type(self).__name__} {self._name!r}"
        return html_table(title, [*rows, *figures], align="right")

    def __rich_repr__(self) -> Iterator[tuple[str, object] | object]:
        """Yield the fields of the representation in rich and Textual."""
        yield self._name
        yield "alignment", self._alignment
        yield from main_figures(self.stats()).items()
