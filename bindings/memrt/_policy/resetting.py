"""Reset of policies: give all memory back, after a check that no block is live."""

from __future__ import annotations

import gc

from memrt import _memrt
from memrt._support.process_object import ProcessObject


class Resettable(ProcessObject):
    """Policy with :meth:`reset`."""

    __slots__ = ()

    _handler: object

    def reset(self) -> int:
        """Give all memory of the policy back at once, after a check that nothing refers to it.

        Each live block of the policy refuses the reset: arrays, MemInfos, exported buffers, adopted
        memory, in any scope. memrt never frees memory that something refers to. With an error,
        nothing has changed.

        Before the check, ``gc.collect()`` frees arrays in reference cycles. Then an arena gives its
        chunks back, and a policy with settings or an allocator of its own gives its cached memory
        back. Other policies keep no memory, because memrt's heap serves all policies: see
        :func:`memrt.release_unused`. The policy stays usable.

        Returns
        -------
        int
            Bytes given back. An arena over memrt's heap also gives unused memory of the heap back.

        Raises
        ------
        RuntimeError
            A block of the policy is live. The message has the number of blocks and bytes, and the
            largest blocks that were allocated while tracking was on, with their references, names
            and source lines. :func:`memrt.holders` shows what keeps an array.

        Notes
        -----
        Threads: other threads may use the policy; memory that they allocate meanwhile stays valid.

        Examples
        --------
        >>> import memrt
        >>> import numpy as np
        >>> with memrt.arena("request", chunk="64 KiB") as requests:
        ...     rows = [np.zeros(100) for _ in range(50)]
        >>> try:
        ...     requests.reset()
        ... except RuntimeError as error:
        ...     print(str(error).splitlines()[0].partition(" (")[0])
        policy 'request' must have no live block, got 50 of 39.1 KiB
        >>> del rows
        >>> requests.reset() > 0
        True
        """
        gc.collect()
        return _memrt.policy_reset(self._handler)
