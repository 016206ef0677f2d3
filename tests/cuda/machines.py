"""Machines for the CUDA tests: a fake driver, or a GPU."""

from __future__ import annotations

import ctypes
import os
import shlex
import subprocess
from pathlib import Path

HERE = Path(__file__).resolve().parent
GPU = "TEST_ON_GPU"
"""Set to 1 to run the tests on the first GPU of the machine's own driver."""


def compile_fake(folder: Path) -> Path:
    """Compile the fake driver into a folder, and return its path."""
    target = folder / "libfake_driver.so"
    compiler = shlex.split(os.environ.get("CC", "cc"))
    warnings = ("-Wall", "-Wextra", "-Werror", "-D_GNU_SOURCE", "-std=c11")
    shape = ("-O1", "-g", "-fPIC", "-shared", "-pthread")
    source = HERE / "fake_driver.c"
    subprocess.run([*compiler, *shape, *warnings, source, "-o", target], check=True)
    return target


class Fake:
    """The fake driver."""

    is_real = False

    def __init__(self, library: Path) -> None:
        self.path = str(library)
        self.library = ctypes.CDLL(self.path)
        word, size = ctypes.c_size_t, ctypes.c_size_t
        self.library.fake_launch.argtypes = [word, word, ctypes.c_int, size]
        self.library.fake_peek.argtypes = [word]
        self.library.fake_alias.argtypes = [word]
        self.library.fake_alias.restype = word
        self.library.fake_log.restype = ctypes.c_char_p

    def launch(self, stream: int, address: int, value: int, nbytes: int) -> None:
        """Add work to a stream that sets bytes. The bytes change only when a call waits for the
        work.
        """
        self.library.fake_launch(stream, address, value, nbytes)

    def reset(self) -> None:
        self.library.fake_reset()

    def fail(self, function: str, error: int, nth: int = 1, goes_on: bool = False) -> None:
        """Make the nth next call of a function fail, and all later calls if `goes_on`."""
        self.library.fake_fail(function.encode(), nth, error, goes_on)

    def hold(self, function: str) -> None:
        """Make the next call of a function wait for let_go(), for at most 5 seconds."""
        self.library.fake_hold(function.encode())

    def holds(self) -> bool:
        """Return whether a call waits for let_go()."""
        return bool(self.library.fake_holds())

    def let_go(self) -> None:
        self.library.fake_let_go()

    def calls(self, *functions: str) -> int:
        return sum(self.library.fake_calls(name.encode()) for name in functions)

    def log(self) -> list[str]:
        return self.library.fake_log().decode().splitlines()

    def faults(self) -> int:
        return self.library.fake_faults()

    def live(self) -> int:
        return self.library.fake_live()

    def peek(self, address: int) -> int:
        return self.library.fake_peek(address)

    def alias(self, address: int) -> int:
        return self.library.fake_alias(address)

    def machine(self, devices: int = 1, pools: bool = True) -> None:
        self.library.fake_machine(devices, pools)


class Gpu:
    """The first device of the machine, by its driver."""

    is_real = True
    CYCLES = 50_000_000  # some hundredths of a second

    def __init__(self) -> None:
        self.library = ctypes.CDLL("libcuda.so.1")
        context, module = ctypes.c_void_p(), ctypes.c_void_p()
        self.function = ctypes.c_void_p()
        self._call("cuInit", 0)
        self._call("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
        self._call("cuCtxPushCurrent_v2", context)
        text = (HERE / "slow_fill.ptx").read_bytes() + b"\0"
        self._call("cuModuleLoadData", ctypes.byref(module), text)
        self._call("cuModuleGetFunction", ctypes.byref(self.function), module, b"slow_fill")

    def _call(self, name: str, *arguments: object) -> None:
        result = getattr(self.library, name)(*arguments)
        assert result == 0, f"{name} must return 0, got {result}"

    def launch(self, stream: int, address: int, value: int, nbytes: int) -> None:
        """Add a kernel to a stream that delays and then sets bytes."""
        numbers = [ctypes.c_uint64(each) for each in (address, nbytes, self.CYCLES)]
        parameters = [*numbers, ctypes.c_uint32(value)]
        pointers = (ctypes.c_void_p * 4)(*(ctypes.addressof(each) for each in parameters))
        one = ctypes.c_uint(1)
        self._call(
            "cuLaunchKernel",
            *(self.function, one, one, one, one, one, one, ctypes.c_uint(0)),
            *(ctypes.c_void_p(stream), pointers, None),
        )


Machine = Fake | Gpu
