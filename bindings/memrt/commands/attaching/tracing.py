"""Run one function in the main thread of another process, by ptrace, on x86-64.

Only the main thread stops, for about a millisecond. All registers and the signal mask are restored
at the end. The injected call allocates nothing, so the call is safe wherever the thread was
stopped, with one exception: the thread must not hold the lock of Python's pending calls.

gdb is not used: gdb 13 cannot write the extended registers of processors with AMX, and the process
ends with an error after a call by gdb. A call by gdb also stops all threads, and allocates memory
for texts.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import struct
import time
from collections.abc import Iterator

from memrt.commands.attaching.symbols import mappings

_GETREGSET, _SETREGSET, _SEIZE, _INTERRUPT = 0x4204, 0x4205, 0x4206, 0x4207
_GETSIGMASK, _SETSIGMASK, _CONT, _SINGLESTEP, _DETACH = 0x420A, 0x420B, 7, 9, 17
_GENERAL, _EXTENDED = 1, 0x202  # register sets: NT_PRSTATUS, NT_X86_XSTATE
_WALL, _STOPPED = 0x40000000, 128  # __WALL, PTRACE_EVENT_STOP
_NAMES = (
    "r15 r14 r13 r12 rbp rbx r11 r10 r9 r8 rax rcx rdx rsi rdi orig_rax rip cs eflags rsp ss "
    "fs_base gs_base ds es fs gs"
).split()
_REGISTERS = struct.Struct(f"={len(_NAMES)}Q")
_MMAP, _RED_ZONE, _NO_SYSTEM_CALL = 9, 128, (1 << 64) - 1
_SYSCALL = b"\x0f\x05"
_SECONDS = 5.0  # limit for one step of the thread
_KEPT = (signal.SIGSEGV, signal.SIGTRAP, signal.SIGBUS, signal.SIGILL, signal.SIGFPE)


class TraceError(Exception):
    """The function did not run; the message is a clause that ends "process N ..."."""


class _Vector(ctypes.Structure):
    _fields_ = (("address", ctypes.c_void_p), ("length", ctypes.c_size_t))


def call_in_main_thread(pid: int, function: int, argument: int, text: bytes) -> int:
    """Call `function(argument, text)` in a process, with a copy of the text, and return the int.

    The copy stays in the memory of the process.

    Parameters
    ----------
    function : int
        Address of a function that takes two pointers, blocks for no longer than an instant, and
        needs neither the GIL nor memory.
    text : bytes
        Bytes with a final zero byte.

    Raises
    ------
    TraceError
        The process could not be traced, or ended, or the function did not return.
    OSError
        The process has ended, or tracing is refused: EPERM.
    """
    with _deferred_signals(), _Thread(pid) as thread:
        address = thread.map_memory(len(text))
        thread.write(address, text)
        return thread.call(function, argument, address)


@contextlib.contextmanager
def _deferred_signals() -> Iterator[None]:
    """Defer signals of this process: an end between two steps would end the other process, too."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class _Thread:
    """Main thread of a process, stopped inside the `with` block."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        library = ctypes.CDLL(None, use_errno=True)
        self._ptrace = library.ptrace
        self._ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
        self._ptrace.restype = ctypes.c_long

    def __enter__(self) -> _Thread:
        self._do(_SEIZE)
        try:
            self._stop()
            self._registers = self._get(_GENERAL, _REGISTERS.size)
            self._extended = self._get(_EXTENDED, 1 << 16)
            self._mask = ctypes.create_string_buffer(8)
            self._do(_GETSIGMASK, 8, ctypes.addressof(self._mask))
            kept = sum(1 << (number - 1) for number in _KEPT)
            blocked = ctypes.create_string_buffer(struct.pack("=Q", ~kept % (1 << 64)), 8)
            self._do(_SETSIGMASK, 8, ctypes.addressof(blocked))
        except BaseException:
            with contextlib.suppress(OSError):
                self._do(_DETACH)
            raise
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError):  # the process may have been killed
            self._set(_GENERAL, self._registers)
            self._set(_EXTENDED, self._extended)
            self._do(_SETSIGMASK, 8, ctypes.addressof(self._mask))
        with contextlib.suppress(OSError):
            self._do(_DETACH)

    def map_memory(self, length: int) -> int:
        """Map new memory in the process, and return the address."""
        at = self._system_call_instruction()
        self._change(rip=at, rax=_MMAP, rdi=0, rsi=length, rdx=3, r10=0x22, r8=_NO_SYSTEM_CALL,
                     r9=0)  # fmt: skip
        self._do(_SINGLESTEP)
        self._wait(signal.SIGTRAP)
        result = self._now()["rax"]
        if result > _NO_SYSTEM_CALL - 4096:
            raise TraceError(f"has no memory left: {os.strerror(2**64 - result)}")
        return result

    def write(self, address: int, data: bytes) -> None:
        """Write to the memory of the process."""
        with open(f"/proc/{self._pid}/mem", "r+b", buffering=0) as file:
            file.seek(address)
            file.write(data)

    def call(self, function: int, first: int, second: int) -> int:
        """Call a function, and return the int that the function returns.

        The return address is 0, so the return causes a SIGSEGV, which only the tracer sees.
        """
        stack = (self._saved()["rsp"] - _RED_ZONE - 64) // 16 * 16 - 8
        self.write(stack, bytes(8))
        self._change(rip=function, rsp=stack, rdi=first, rsi=second, rax=0)
        self._do(_CONT)
        self._wait(signal.SIGSEGV)
        after = self._now()
        if after["rip"] != 0:
            raise TraceError("did not return from the injected call")
        return ctypes.c_int(after["rax"] & 0xFFFFFFFF).value

    def _stop(self) -> None:
        """Stop the thread. A signal that arrives first is delivered."""
        self._do(_INTERRUPT)
        status = self._next_status()
        while status >> 16 != _STOPPED:
            self._do(_CONT, 0, os.WSTOPSIG(status))
            status = self._next_status()
        if os.WSTOPSIG(status) != signal.SIGTRAP:
            raise TraceError("is stopped: let it continue with SIGCONT")

    def _wait(self, number: signal.Signals) -> None:
        """Wait until the thread stops with a signal."""
        try:
            status = self._next_status()
        except TimeoutError:
            self._do(_INTERRUPT)
            self._next_status()
            raise TraceError("is busy with pending calls: try again") from None
        if os.WSTOPSIG(status) != number:
            raise TraceError(f"got {signal.Signals(os.WSTOPSIG(status)).name}")

    def _next_status(self) -> int:
        until = time.monotonic() + _SECONDS
        while time.monotonic() < until:
            pid, status = os.waitpid(self._pid, os.WNOHANG | _WALL)
            if pid and os.WIFSTOPPED(status):
                return status
            if pid:
                raise TraceError("has ended")
            time.sleep(0.0002)
        raise TimeoutError

    def _system_call_instruction(self) -> int:
        """Return the address of a system call instruction in the kernel's own code."""
        code = next((each for each in mappings(self._pid) if each.path == "[vdso]"), None)
        if code is not None:
            with open(f"/proc/{self._pid}/mem", "rb", buffering=0) as file:
                file.seek(code.start)
                at = file.read(code.end - code.start).find(_SYSCALL)
            if at >= 0:
                return code.start + at
        raise TraceError("has no vDSO")

    def _saved(self) -> dict[str, int]:
        return dict(zip(_NAMES, _REGISTERS.unpack(self._registers), strict=True))

    def _now(self) -> dict[str, int]:
        values = _REGISTERS.unpack(self._get(_GENERAL, _REGISTERS.size))
        return dict(zip(_NAMES, values, strict=True))

    def _change(self, **values: int) -> None:
        """Set registers, the others as saved. A system call of the thread restarts later."""
        changed = {**self._saved(), "orig_rax": _NO_SYSTEM_CALL, **values}
        changed["eflags"] &= ~0x400  # direction: up
        self._set(_GENERAL, _REGISTERS.pack(*changed.values()))

    def _get(self, which: int, room: int) -> bytes:
        buffer = ctypes.create_string_buffer(room)
        vector = _Vector(ctypes.addressof(buffer), room)
        self._do(_GETREGSET, which, ctypes.addressof(vector))
        return buffer.raw[: vector.length]

    def _set(self, which: int, data: bytes) -> None:
        buffer = ctypes.create_string_buffer(data, len(data))
        vector = _Vector(ctypes.addressof(buffer), len(data))
        self._do(_SETREGSET, which, ctypes.addressof(vector))

    def _do(self, request: int, address: int = 0, data: int = 0) -> None:
        if self._ptrace(request, self._pid, address, data) == -1:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))
