"""Allocate and exchange arrays in CUDA memory: device, managed and pinned memory, as MemInfos.

memrt loads the CUDA driver at the first call that needs the driver; nothing is linked. Without a
driver, :func:`available` is False, :func:`why_not` gives the reason, and the rest of memrt works::

    import memrt

    if memrt.cuda.available():
        a = memrt.cuda.empty((1000, 1000), "f4", stream=memrt.cuda.Stream())
        a.copy_from_host(1.0)
        b = cupy.asarray(a)                         # any library that knows the
        c = memrt.from_cuda_array_interface(b)      # CUDA Array Interface

Under ``memrt.Policy(pinned=True)``, NumPy allocates its own arrays in pinned memory.
"""

from memrt._memrt import CudaError
from memrt.cuda._accounts import CudaStats, set_limit, stats
from memrt.cuda._array import Array
from memrt.cuda._creation import empty
from memrt.cuda._driver import available, why_not
from memrt.cuda._stream import Stream

__all__ = [
    "Array",
    "CudaError",
    "CudaStats",
    "Stream",
    "available",
    "empty",
    "set_limit",
    "stats",
    "why_not",
]


def __dir__() -> list[str]:
    return list(__all__)
