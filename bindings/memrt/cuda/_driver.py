"""Find out whether the CUDA driver can be used."""

from __future__ import annotations

from memrt import _memrt
from memrt._support.public import public


@public("memrt.cuda")
def available() -> bool:
    """Return whether CUDA can be used: the driver is installed, starts, and finds a device.

    Loads the driver. While no driver is found, each call searches again.

    Returns
    -------
    bool
        True if CUDA can be used.

    Examples
    --------
    >>> import memrt
    >>> memrt.cuda.available() == (memrt.cuda.why_not() is None)
    True
    """
    return why_not() is None


@public("memrt.cuda")
def why_not() -> str | None:
    """Return the reason why CUDA cannot be used.

    Returns
    -------
    str or None
        Reason as a sentence; None if CUDA can be used.

    Examples
    --------
    >>> import memrt
    >>> reason = memrt.cuda.why_not()
    >>> reason is None or len(reason) > 0
    True
    """
    return _memrt.cuda_why_not()


def require_driver() -> None:
    """Raise an error if CUDA cannot be used.

    Raises
    ------
    CudaError
        No driver is installed, or this is a forked child process.
    """
    if (reason := _memrt.cuda_why_not()) is not None:
        raise _memrt.CudaError(reason)
