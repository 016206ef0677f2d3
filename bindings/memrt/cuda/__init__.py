"""Memory of CUDA: arrays on devices, in managed and in pinned memory, as MemInfos.

The driver is loaded at the first call that needs it; nothing is linked. Without one,
:func:`available` is False, :func:`why_not` says why, and the rest of memrt works::

    import memrt

    if memrt.cuda.available():
        a = memrt.cuda.empty((1000, 1000), "f4", stream=memrt.cuda.Stream())
        a.copy_from_host(1.0)
        b = cupy.asarray(a)                         # any library that knows the
        c = memrt.from_cuda_array_interface(b)      # CUDA Array Interface

NumPy's own arrays come from pinned memory under ``memrt.Policy(pinned=True)``.
"""

from memrt._memrt import CudaError
from memrt.cuda._accounts import CudaStats, set_limit, stats
from memrt.cuda._array import Array, available, empty, why_not
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
