"""DLPack's structs in ctypes: valid or malformed tensors of another library, and access to the
structs that memrt exports.

No library makes malformed tensors: NumPy, PyTorch and JAX export valid tensors only.
"""

from __future__ import annotations

import ctypes
import math

from capsules import address_in, capsule_of, give_back, lend, name_of, rename

INT, UINT, FLOAT, HANDLE, BFLOAT, COMPLEX, BOOL = range(7)
CPU, CUDA, CUDA_HOST, ROCM, ROCM_HOST, MANAGED = 1, 2, 3, 10, 11, 13
READ_ONLY, IS_COPIED = 1, 2


class DataType(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


class Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("dtype", DataType),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class Unversioned(ctypes.Structure):
    _fields_ = [
        ("tensor", Tensor),
        ("manager_ctx", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
    ]


class Versioned(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("manager_ctx", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", Tensor),
    ]


KINDS = {b"dltensor": Unversioned, b"dltensor_versioned": Versioned}
# A capsule borrows its name, so the names live as long as the process.
USED = {name: ctypes.c_char_p(b"used_" + name) for name in KINDS}
Deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


def compact(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the strides of a C-contiguous shape in elements, each at most 2**63 - 1."""
    steps = [math.prod(max(extent, 1) for extent in shape[i + 1 :]) for i in range(len(shape))]
    return tuple(min(step, 2**63 - 1) for step in steps)


def numbers(values) -> ctypes.Array:
    return (ctypes.c_int64 * max(len(values), 1))(*values)


class Producer:
    """A library that exports the same tensor each time and counts calls of the tensor's deleter.

    The default tensor has 2 by 3 by 4 doubles. A pointer field may be None or an address.
    """

    def __init__(self, *, versioned=True, version=(1, 3), flags=0, name=None, **fields):
        self.memory = (ctypes.c_double * 24)(*range(24))
        self.deleted = 0
        self.asked: list[dict] = []
        self.kept = [Deleter(self._delete)]
        kind = Versioned if versioned else Unversioned
        self.struct = kind(deleter=ctypes.cast(self.kept[0], ctypes.c_void_p).value)
        if versioned:
            (self.struct.major, self.struct.minor), self.struct.flags = version, flags
        self.name = ctypes.c_char_p(name or (b"dltensor_versioned" if versioned else b"dltensor"))
        self._fill(fields)

    def _delete(self, tensor: int) -> None:
        give_back(self)
        assert tensor == ctypes.addressof(self.struct)
        self.deleted += 1

    def _fill(self, fields) -> None:
        tensor = self.struct.tensor
        tensor.data = fields.pop("data", ctypes.addressof(self.memory))
        tensor.device_type, tensor.device_id = fields.pop("device", (CPU, 0))
        tensor.dtype = DataType(*fields.pop("dtype", (FLOAT, 64, 1)))
        shape = fields.pop("shape", (2, 3, 4))
        extents = shape if isinstance(shape, tuple) else ()
        tensor.ndim = fields.pop("ndim", len(extents))
        tensor.shape = self._pointer(shape)
        tensor.strides = self._pointer(fields.pop("strides", compact(extents)))
        tensor.byte_offset = fields.pop("byte_offset", 0)
        if not fields.pop("has_deleter", True):
            self.struct.deleter = None
        assert not fields

    def _pointer(self, values):
        if values is None:
            return None
        if isinstance(values, int):
            return ctypes.cast(ctypes.c_void_p(values), ctypes.POINTER(ctypes.c_int64))
        self.kept.append(numbers(values))
        return ctypes.cast(self.kept[-1], ctypes.POINTER(ctypes.c_int64))

    def capsule(self) -> object:
        lend(self)
        return capsule_of(self.struct, self.name)

    def __dlpack__(self, **wishes) -> object:
        self.asked.append(wishes)
        self.given = self.capsule()
        return self.given

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.struct.tensor.device_type, self.struct.tensor.device_id


class Consumer:
    """Take the tensor out of a capsule, as a DLPack library does; `end` calls the deleter."""

    def __init__(self, capsule: object) -> None:
        name = name_of(capsule)
        self.struct = KINDS[name].from_address(address_in(capsule))
        self.capsule = capsule
        rename(capsule, USED[name])

    @property
    def tensor(self) -> Tensor:
        return self.struct.tensor

    @property
    def version(self) -> tuple[int, int]:
        return self.struct.major, self.struct.minor

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.tensor.shape[: self.tensor.ndim])

    @property
    def strides(self) -> tuple[int, ...]:
        return tuple(self.tensor.strides[: self.tensor.ndim])

    @property
    def dtype(self) -> tuple[int, int, int]:
        dtype = self.tensor.dtype
        return dtype.code, dtype.bits, dtype.lanes

    def end(self) -> None:
        Deleter(self.struct.deleter)(ctypes.addressof(self.struct))
