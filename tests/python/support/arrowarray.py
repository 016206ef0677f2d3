"""Arrow's structs in ctypes: valid or malformed arrays of another library, and access to the
structs that memrt exports.

No library makes malformed arrays: pyarrow and nanoarrow export valid arrays only.
"""

from __future__ import annotations

import ctypes
import errno

from capsules import address_in, capsule_of, give_back, lend, name_of

CPU, CUDA, CUDA_HOST, ROCM_HOST, MANAGED = 1, 2, 3, 11, 13


class Schema(ctypes.Structure):
    pass


class Array(ctypes.Structure):
    pass


Schema._fields_ = [
    ("format", ctypes.c_char_p),
    ("name", ctypes.c_char_p),
    ("metadata", ctypes.c_void_p),
    ("flags", ctypes.c_int64),
    ("n_children", ctypes.c_int64),
    ("children", ctypes.c_void_p),
    ("dictionary", ctypes.c_void_p),
    ("release", ctypes.c_void_p),
    ("private_data", ctypes.c_void_p),
]
Array._fields_ = [
    ("length", ctypes.c_int64),
    ("null_count", ctypes.c_int64),
    ("offset", ctypes.c_int64),
    ("n_buffers", ctypes.c_int64),
    ("n_children", ctypes.c_int64),
    ("buffers", ctypes.POINTER(ctypes.c_void_p)),
    ("children", ctypes.c_void_p),
    ("dictionary", ctypes.c_void_p),
    ("release", ctypes.c_void_p),
    ("private_data", ctypes.c_void_p),
]


class DeviceArray(ctypes.Structure):
    _fields_ = [
        ("array", Array),
        ("device_id", ctypes.c_int64),
        ("device_type", ctypes.c_int32),
        ("sync_event", ctypes.c_void_p),
        ("reserved", ctypes.c_int64 * 3),
    ]


class ArrayStream(ctypes.Structure):
    _fields_ = [
        ("get_schema", ctypes.c_void_p),
        ("get_next", ctypes.c_void_p),
        ("get_last_error", ctypes.c_void_p),
        ("release", ctypes.c_void_p),
        ("private_data", ctypes.c_void_p),
    ]


KINDS = {
    b"arrow_schema": Schema,
    b"arrow_array": Array,
    b"arrow_device_array": DeviceArray,
    b"arrow_array_stream": ArrayStream,
}
Release = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


def struct_of(capsule: object) -> ctypes.Structure:
    """Return the struct in a capsule. The caller must keep the capsule alive."""
    return KINDS[name_of(capsule)].from_address(address_in(capsule))


def structs_in(struct: Schema | Array) -> list:
    """Return the children of a struct."""
    pointers = (ctypes.POINTER(type(struct)) * struct.n_children).from_address(struct.children)
    return [pointer.contents for pointer in pointers]


def release(struct: Schema | Array) -> None:
    Release(struct.release)(ctypes.addressof(struct))


class Producer:
    """A library that exports a single array and counts how often consumers release the array.

    The default array holds 24 doubles. The capsules have no destructors: `end` releases an array
    that no consumer has released.
    """

    def __init__(self, *, data=..., validity=None, names=None, device=None, event=None, **fields):
        self.memory = (ctypes.c_double * 24)(*range(24))
        self.bits = bytes(validity) if isinstance(validity, bytes | list) else None
        self.released = 0
        self.names = names or (
            b"arrow_schema",
            b"arrow_device_array" if device is not None else b"arrow_array",
        )
        self._released = Release(self._release), Release(self._release_schema)
        data = ctypes.addressof(self.memory) if data is ... else data
        bits = validity if self.bits is None else ctypes.cast(self.bits, ctypes.c_void_p).value
        self.buffers = (ctypes.c_void_p * 2)(bits, data)
        self.schema = Schema(format=b"g", name=b"")
        self.schema.release = ctypes.cast(self._released[1], ctypes.c_void_p).value
        self.struct = DeviceArray(
            device_id=-1, device_type=CPU if device is None else device, sync_event=event
        )
        self.array = self.struct.array
        self.array.length, self.array.n_buffers = 24, 2
        self.array.buffers = ctypes.cast(self.buffers, ctypes.POINTER(ctypes.c_void_p))
        self.array.release = ctypes.cast(self._released[0], ctypes.c_void_p).value
        for field, value in fields.items():
            owner = self.schema if field.startswith("schema_") else self.array
            setattr(owner, field.removeprefix("schema_"), value)
        if device is not None:
            self.__arrow_c_device_array__ = self._export
        else:
            self.__arrow_c_array__ = self._export

    def _release(self, address: int) -> None:
        give_back(self)
        self.released += 1
        Array.from_address(address).release = None

    def _release_schema(self, address: int) -> None:
        give_back(self)
        Schema.from_address(address).release = None

    def _export(self, requested_schema=None):
        lend(self)
        lend(self)
        return capsule_of(self.schema, self.names[0]), capsule_of(self.struct, self.names[1])

    def end(self) -> None:
        """Release the array, unless already released, as a capsule's destructor does."""
        if self.array.release:
            release(self.array)


Give = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
LastError = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)


class StreamProducer:
    """A library that exports arrays as a stream and counts how often consumers release the stream.
    `fails` is the index, from 0, of the stream call that fails with an errno, with `message` or
    without a message.
    """

    def __init__(
        self,
        *chunks: Producer,
        fails=None,
        error=errno.EIO,
        message=None,
        name=b"arrow_array_stream",
    ):
        self.chunks, self.left, self.error = chunks, list(chunks), error
        self.fails, self.calls, self.name = fails, 0, name
        self.message = ctypes.c_char_p(message)
        self.released = 0
        self.kept = (
            Give(self._schema),
            Give(self._next),
            LastError(lambda _: ctypes.cast(self.message, ctypes.c_void_p).value),
            Release(self._release),
        )
        self.struct = ArrayStream(*(ctypes.cast(each, ctypes.c_void_p).value for each in self.kept))

    def _failed(self) -> bool:
        self.calls += 1
        return self.fails == self.calls - 1

    def _schema(self, _, out: int) -> int:
        if self._failed():
            return self.error
        self.template = Producer()
        lend(self.template)
        ctypes.memmove(out, ctypes.addressof(self.template.schema), ctypes.sizeof(Schema))
        return 0

    def _next(self, _, out: int) -> int:
        if self._failed():
            return self.error
        array = Array()
        if self.left:
            lend(self.left[0])
            array = self.left.pop(0).array
        ctypes.memmove(out, ctypes.addressof(array), ctypes.sizeof(Array))
        return 0

    def _release(self, address: int) -> None:
        self.released += 1
        ArrayStream.from_address(address).release = None

    def __arrow_c_stream__(self, requested_schema=None):
        return capsule_of(self.struct, self.name)
