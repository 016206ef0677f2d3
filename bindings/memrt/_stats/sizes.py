"""Count blocks by size."""

from __future__ import annotations

from typing import TYPE_CHECKING

from memrt import _memrt
from memrt._support.public import public

if TYPE_CHECKING:
    from memrt._policy.policy import Policy


def by_upper_bound(
    counts: tuple[tuple[int, ...], tuple[int, ...]], *, live: bool
) -> dict[int, int]:
    """Return the allocated or the live blocks of `counts` by the upper bounds of their sizes."""
    return {1 << bits: count for bits, count in enumerate(counts[live]) if count != 0}


@public("memrt.debug")
def sizes(policy: Policy | None = None, *, live: bool = False) -> dict[int, int]:
    """Return the number of blocks by size, of the process or of a policy.

    Parameters
    ----------
    policy : Policy, optional
        Policy with the blocks. None: the whole process.
    live : bool, optional
        Count the blocks that are not freed, in place of all blocks allocated so far.

    Returns
    -------
    dict of int to int
        Counts by upper bound. The value of key k counts blocks of at least k/2 and fewer than k
        bytes. Key 1 counts empty blocks. Ranges without blocks are left out. The last possible key,
        1 << 47, also counts all larger blocks.

    Raises
    ------
    TypeError
        `policy` is not a Policy.

    Notes
    -----
    A resized block counts with its new size. Adopted memory is not counted. Counting costs nothing:
    the allocation counts the block anyway.

    Threads: the numbers are exact when no other thread is inside memrt.

    Examples
    --------
    >>> import memrt
    >>> policy = memrt.Policy(name="sizes")
    >>> buffers = [memrt.alloc(size, policy=policy) for size in (100, 120, 1000)]
    >>> del buffers[0]
    >>> memrt.debug.sizes(policy)
    {128: 2, 1024: 1}
    >>> memrt.debug.sizes(policy, live=True)
    {128: 1, 1024: 1}
    """
    return by_upper_bound(_memrt.stats_sizes(policy), live=live)
