"""Advice to the system about pages of arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from memrt import _memrt
from memrt._support.public import public


@public("memrt.debug")
def cold(array: np.ndarray[Any, Any] | memoryview, *, pageout: bool = False) -> int:
    """Advise the system that an array is not needed soon.

    The system then takes the memory of the array before other memory. The contents stay: the next
    access brings the pages back. Pages of a policy with a `file` and of a memory-mapped file go to
    their files, other pages go to swap space.

    Parameters
    ----------
    array : numpy.ndarray or memoryview
        Any array, also of another allocator. For a view, the pages from its first to its last byte.
    pageout : bool, default False
        False: the pages go once memory is scarce. True: the system writes the pages now, and the
        call waits.

    Returns
    -------
    int
        Bytes of the whole pages inside the array; 0 for an array smaller than a page.

    Raises
    ------
    TypeError
        The argument is neither an array of NumPy nor a memoryview.
    OSError
        The memory is locked, or Linux is older than 5.4.

    Notes
    -----
    Without swap space, only pages of files go. Pages that other processes have mapped too may stay.
    The call runs without the GIL; other threads may use the array meanwhile.

    Examples
    --------
    >>> import memrt
    >>> table = memrt.zeros(1_000_000)
    >>> memrt.debug.cold(table) > 7_900_000
    True
    """
    return _memrt.pages_cold(array, pageout)
