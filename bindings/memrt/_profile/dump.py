"""Write recordings of one moment: on request, on a signal, and before a refused allocation."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import sys
import time
import warnings
from contextvars import Context
from types import FrameType

from memrt import _memrt
from memrt._policy.refusal import LAST, on_refusal
from memrt._profile.recorder import Recorder
from memrt._profile.recording import Document, dumps
from memrt._support.closable import Closable
from memrt._support.public import public
from memrt._support.units import human_bytes
from memrt._tracking.live import live

_VARIABLE = "MEMRT_DUMP_ON_OOM"
_NAME = re.compile(r"memrt-.*\.memrt")


@public("memrt.debug")
def dump(path: str | os.PathLike[str]) -> None:
    """Write a recording of this moment: live buffers, their allocation sites and their holders.

    ``python -m memrt report`` makes a page of the recording, and ``python -m memrt convert --to
    pprof`` a heap profile.

    Parameters
    ----------
    path : str or os.PathLike
        New file, with mode 0600.

    Raises
    ------
    FileExistsError
        The file exists. The file stays unchanged.
    OSError
        The file cannot be written. No file remains.

    Notes
    -----
    The recording has the buffers that were allocated while tracking was on. The search for holders
    takes up to two seconds. Garbage is not collected before.

    Examples
    --------
    >>> import memrt, os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "now.memrt")
    >>> with memrt.debug.tracking():
    ...     table = memrt.zeros(1000)
    >>> memrt.debug.dump(path)
    >>> oct(os.stat(path).st_mode & 0o777)
    '0o600'
    """
    _write(os.fspath(path), document_now("on request"))


def document_now(why: str) -> Document:
    """Return a recording of this moment.

    In an empty context, NumPy allocates from its own allocator. So arrays of the recorder need no
    memory of a policy that has no room.
    """
    return Context().run(_record, why)


def _record(why: str) -> Document:
    tracked = _memrt.tracking_enabled() or bool(live())
    recorder = Recorder({"Dump": why}, tracked)
    recorder.stop()
    return recorder.finish(f"still running: dump {why}", at_end=False)


def _write(path: str, document: Document) -> None:
    data = dumps([document]).encode("ascii")
    flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY
    descriptor = os.open(path, flags, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(path)
        raise


class _Folder:
    """A folder for dumps, of at most `most` files.

    Threads and forks: each process writes at most one dump at a time.
    """

    def __init__(self, path: str | os.PathLike[str], most: int) -> None:
        if not isinstance(most, int):
            raise TypeError(f"most must be a whole number of files, got {most!r}")
        if most < 1:
            raise ValueError(f"most must be 1 or more, got {most}")
        self.path = os.path.abspath(os.fspath(path))
        self.most = most
        self._running: dict[int, object] = {}
        os.makedirs(self.path, mode=0o700, exist_ok=True)

    def write(self, why: str) -> bool:
        """Write a dump. Return False in a full folder, or during a dump of this process."""
        process, mine = os.getpid(), object()
        if self._running.setdefault(process, mine) is not mine:
            return False
        try:
            if self._is_full():
                return False
            self._write_new(document_now(why))
            return True
        finally:
            del self._running[process]

    def _is_full(self) -> bool:
        return sum(bool(_NAME.fullmatch(name)) for name in os.listdir(self.path)) >= self.most

    def _write_new(self, document: Document) -> None:
        """Write a new file. Names of other processes and of the same second get a number."""
        stem = f"memrt-{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}-{os.getpid()}"
        for number in range(1, self.most + 2):
            path = os.path.join(self.path, f"{stem}-{number}.memrt")
            with contextlib.suppress(FileExistsError):
                return _write(path, document)
        return None


@public("memrt.debug")
class dump_on_refusal(Closable):  # noqa: N801 - used like a function
    """Write a dump before an allocation is refused for lack of memory.

    A dump is a recording of the moment, as :func:`memrt.debug.dump` writes. The dump begins after
    all functions of :class:`memrt.debug.on_refusal`, while all buffers are still live. Then the
    allocation raises MemoryError.

    Parameters
    ----------
    folder : str or os.PathLike
        Folder for the dumps. A missing folder is created with mode 0700.
    most : int, default 10
        Maximum of dumps in the folder, of all processes. With more dumps, no dump is written.

    Raises
    ------
    OSError
        The folder cannot be created.
    TypeError, ValueError
        `most` is not a whole number of at least 1.
    RuntimeError
        64 callbacks for refusals are registered.

    Notes
    -----
    ``MEMRT_DUMP_ON_OOM=FOLDER`` does the same for a program from the import of memrt. Files are
    named after time and process, and never replaced. An error of the dump goes to
    ``sys.unraisablehook`` and the MemoryError stays. No dump is written where callbacks for
    refusals do not run: on a thread without the GIL, while an exception is pending, for injected
    failures of memory for MemInfos, and while the interpreter shuts down.

    Threads: of several threads that are refused at the same time, one writes a dump.

    Examples
    --------
    >>> import memrt, os, tempfile
    >>> folder = tempfile.mkdtemp()
    >>> policy = memrt.Policy(name="dumped", limit="1 MiB")
    >>> with memrt.debug.dump_on_refusal(folder):
    ...     memrt.zeros(2 << 20, "u1", policy=policy)
    Traceback (most recent call last):
    ...
    memrt.OutOfMemoryError: no memory for 2.0 MiB (2097152 bytes) of policy 'dumped'
    ...
    >>> len(os.listdir(folder))
    1
    """

    __slots__ = ("_callback", "_folder")

    def __init__(self, folder: str | os.PathLike[str], *, most: int = 10) -> None:
        self._folder = _Folder(folder, most)
        self._callback = on_refusal(self._dump, LAST)

    def _dump(self, wanted: int) -> None:
        self._folder.write(f"before a refused request of {human_bytes(wanted)} ({wanted} bytes)")

    def close(self) -> None:
        """End the dumps. A second call has no effect."""
        self._callback.close()


@public("memrt.debug")
class dump_on_signal(Closable):  # noqa: N801 - used like a function
    """Write a dump when the process gets a signal.

    A dump is a recording of the moment, as :func:`memrt.debug.dump` writes.

    Parameters
    ----------
    folder : str or os.PathLike
        Folder for the dumps. A missing folder is created with mode 0700.
    signum : int, default signal.SIGUSR2
        Number of the signal.
    most : int, default 10
        Maximum of dumps in the folder, of all processes. With more dumps, no dump is written.

    Raises
    ------
    OSError
        The folder cannot be created, or the signal cannot be handled.
    TypeError, ValueError
        `most` is not a whole number of at least 1, or the calling thread is not the main thread.

    Notes
    -----
    Python handles signals in the main thread. A long call of compiled code in the main thread
    delays the dump. A dump that fails, and a full folder, print one line on standard error.

    Examples
    --------
    >>> import memrt, os, signal, tempfile
    >>> folder = tempfile.mkdtemp()
    >>> with memrt.debug.dump_on_signal(folder):
    ...     signal.raise_signal(signal.SIGUSR2)
    >>> len(os.listdir(folder))
    1
    """

    __slots__ = ("_before", "_folder", "_signum")

    def __init__(
        self, folder: str | os.PathLike[str], signum: int = signal.SIGUSR2, *, most: int = 10
    ) -> None:
        self._folder = _Folder(folder, most)
        self._signum = signum
        self._before = signal.signal(signum, self._dump)

    def _dump(self, signum: int, frame: FrameType | None) -> None:
        try:
            written = self._folder.write(f"on signal {signum}")
            problem = None if written else f"{self._folder.path!r} is full, or a dump is running"
        except Exception as error:
            problem = f"{type(error).__name__}: {error}"
        if problem is not None and sys.stderr is not None:  # None: print would write on stdout
            with contextlib.suppress(Exception):  # stderr may be gone
                print(f"memrt: no dump was written: {problem}", file=sys.stderr, flush=True)

    def close(self) -> None:
        """Restore the handler of the signal, unless the program has set another handler.

        Raises
        ------
        ValueError
            The calling thread is not the main thread.
        """
        if signal.getsignal(self._signum) == self._dump:
            before = signal.SIG_DFL if self._before is None else self._before
            signal.signal(self._signum, before)


def dump_as_environment_says(stacklevel: int) -> None:
    """Write dumps to the folder that MEMRT_DUMP_ON_OOM names, for the life of the process.

    A folder that cannot be used causes a RuntimeWarning.
    """
    options = {name: value for name, value, _ in _memrt.options()}
    folder = os.environ.get(_VARIABLE, "none")
    if "none" in (folder, options[_VARIABLE]):  # a set-uid process reads no options
        return
    try:
        dump_on_refusal(folder)
    except OSError as error:
        warnings.warn(
            f"{_VARIABLE} must be a folder that can be written, got {folder!r}: {error.strerror}",
            RuntimeWarning,
            stacklevel=stacklevel + 1,
        )
