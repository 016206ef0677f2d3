"""NEP 49's secret_data_allocator in Python: a header before each block, checked by `free`.

The object `allocator` is for ``memrt.Policy(allocator=...)``, and for the command
``python -m memrt check-allocator secret_data:allocator``.
"""

import ctypes

libc = ctypes.CDLL(None)
libc.aligned_alloc.restype = ctypes.c_void_p
libc.aligned_alloc.argtypes = [ctypes.c_size_t, ctypes.c_size_t]
libc.free.restype = None
libc.free.argtypes = [ctypes.c_void_p]

HEADER = 64
SECRET = b"originally allocated %d after %d"


class SecretDataAllocator:
    """Allocator whose blocks begin with a hidden text."""

    def __init__(self) -> None:
        self.unmatched = 0

    def allocate(self, nbytes: int, alignment: int) -> int:
        """Return the address of `nbytes` bytes, a multiple of `alignment`."""
        gap = max(HEADER, alignment)  # the header ends where the block begins
        size = -(-(gap + nbytes) // gap) * gap
        start = libc.aligned_alloc(gap, size)
        if start is None:
            raise MemoryError
        secret = (SECRET % (nbytes, gap)).ljust(HEADER, b"\0")
        ctypes.memmove(start + gap - HEADER, secret, HEADER)
        return start + gap

    def free(self, address: int, nbytes: int) -> None:
        """Check the header, and give the block back."""
        secret = ctypes.string_at(address - HEADER)
        words = secret.split()
        if len(words) != 5 or secret != SECRET % (nbytes, int(words[4])):
            self.unmatched += 1  # the start of the memory is unknown
            return
        libc.free(address - int(words[4]))


allocator = SecretDataAllocator()
