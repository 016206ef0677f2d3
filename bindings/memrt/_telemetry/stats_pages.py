"""Read statistics pages: files in shared memory with the statistics of other processes.

A page stays readable after its process was killed. runtime/report/stats_page.h defines the layout
of a page. A page of another version is refused.
"""

from __future__ import annotations

import os
import re
import stat
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memrt._stats.snapshot import Stats

MAGIC = b"memrtpg\0"
VERSION = 1
_ORDER = 0x01020304
_HEAD = struct.Struct("=8s2I3Q216s")
_SLOT = struct.Struct("=2I3Q2I17Q")
_ROW = struct.Struct("=4I64s17Q")
_SLOTS_AT = (4 << 10, (4 << 10) + (256 << 10))
_POLICY, _SCOPE = 1, 2
_NAME = re.compile(r"([1-9][0-9]{0,9})-([0-9]{1,20})")


class PageError(Exception):
    """Failure to read a statistics page; the message is a sentence with the cause."""


@dataclass(frozen=True)
class Page:
    """Statistics page of one process, identified by process id and start time."""

    path: Path
    pid: int
    started: int

    @property
    def runs(self) -> bool:
        """Whether the process is running; false for a zombie and for another process of that id."""
        state, started = _process(self.pid)
        return started == self.started and state not in "ZX"


@dataclass(frozen=True)
class Row:
    """Row of a policy."""

    name: str
    stats: Stats


@dataclass(frozen=True)
class Snapshot:
    """Last snapshot that a process wrote to its statistics page."""

    pid: int
    runs: bool
    command: str
    begun: float
    """Start of the page, in seconds since 1970."""
    time: float
    """Time of the snapshot, in seconds since 1970."""
    resident: int
    """Resident memory of the process in bytes."""
    stats: Stats
    policies: dict[int, Row]
    scopes: dict[tuple[str, ...], Stats]
    left_out: int
    """Number of policies and scopes without room on the page."""

    def to_dict(self) -> dict[str, Any]:
        """Return the snapshot in the form of ``python -m memrt top --json``."""
        return {
            "pid": self.pid,
            "state": "running" if self.runs else "dead",
            "command": self.command,
            "begun": self.begun,
            "time": self.time,
            "resident": self.resident,
            "process": self.stats.to_dict(),
            "policies": [
                {"index": index, "name": row.name, "stats": row.stats.to_dict()}
                for index, row in self.policies.items()
            ],
            "scopes": [
                {"path": list(path), "stats": stats.to_dict()}
                for path, stats in self.scopes.items()
            ],
            "left_out": self.left_out,
        }


def own_folder() -> Path:
    """Return the folder of this user's statistics pages."""
    return Path(f"/dev/shm/memrt-{os.geteuid()}")


def _process(pid: int) -> tuple[str, int]:
    """Return the state and the start time of a process, or ("X", -1) if there is no process."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return "X", -1
    fields = text.rpartition(")")[2].split()
    return fields[0], int(fields[19])


def _is_own(about: os.stat_result, is_kind: Any) -> bool:
    return is_kind(about.st_mode) and about.st_uid == os.geteuid() and not about.st_mode & 0o077


def _check_folder(folder: Path) -> bool:
    """Return whether the folder exists.

    Raises
    ------
    PageError
        The folder belongs to another user, or the mode grants access to other users.
    """
    try:
        about = folder.lstat()
    except FileNotFoundError:
        return False
    if not _is_own(about, stat.S_ISDIR):
        raise PageError(f"{folder} must be a folder that you own, with mode 0700")
    return True


def pages(folder: Path | None = None) -> list[Page]:
    """Return all statistics pages of this user, sorted by process id and start time.

    Files whose names are not page names are ignored.

    Raises
    ------
    PageError
        The folder belongs to another user, or the mode grants access to other users.
    """
    folder = own_folder() if folder is None else folder
    found = []
    for name in os.listdir(folder) if _check_folder(folder) else ():
        numbers = _NAME.fullmatch(name)
        if numbers:
            found.append(Page(folder / name, int(numbers[1]), int(numbers[2])))
    return sorted(found, key=lambda page: (page.pid, page.started))


def page_of(pid: int, folder: Path | None = None) -> Page:
    """Return the statistics page of a process id; the latest page if several processes had the id.

    Raises
    ------
    PageError
        There is no page; the message states the cause.
    """
    own = [page for page in pages(folder) if page.pid == pid]
    if own:
        return own[-1]
    try:
        owner = Path(f"/proc/{pid}").stat().st_uid
    except OSError:
        text = f"no process {pid} is running, and no page of process {pid} is left"
        raise PageError(text) from None
    if owner != os.geteuid():
        raise PageError(
            f"process {pid} belongs to another user: only that user can read the statistics"
        )
    raise PageError(
        f"process {pid} does not share statistics: start the program with MEMRT_SHARE=1 or by "
        f"'python -m memrt run --share', or use 'python -m memrt attach {pid}'"
    )


def clean(folder: Path | None = None) -> list[Page]:
    """Remove the pages of processes that no longer run, and return the removed pages."""
    gone = [page for page in pages(folder) if not page.runs]
    for page in gone:
        page.path.unlink(missing_ok=True)
    return gone


def read(page: Page) -> Snapshot:
    """Read the latest snapshot of a statistics page.

    Raises
    ------
    PageError
        The file is not a page, has another version, or contains no complete slot.
    """
    for _ in range(3):  # the process may write one slot while the other slot is read
        with _open_page(page) as file:
            head = _head(page, os.pread(file.fileno(), _HEAD.size, 0))
            slots = [_slot(file.fileno(), at) for at in _SLOTS_AT]
        whole = [slot for slot in slots if slot is not None]
        if whole:
            return _snapshot(page, head, max(whole, key=lambda slot: slot[0][2]))
    raise PageError(f"the page of process {page.pid} has no complete slot")


def _open_page(page: Page) -> Any:
    try:
        file = os.fdopen(os.open(page.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb", 0)
    except FileNotFoundError:
        raise PageError(f"process {page.pid} has ended and removed the page") from None
    except OSError as error:
        raise PageError(f"{page.path} cannot be read: {error.strerror}") from None
    if not _is_own(os.fstat(file.fileno()), stat.S_ISREG):
        file.close()
        raise PageError(f"{page.path} must be a file that you own, with mode 0600")
    return file


def _head(page: Page, text: bytes) -> tuple[Any, ...]:
    if text == b"":
        raise PageError(f"process {page.pid} has not written statistics yet")
    if len(text) < _HEAD.size or not text.startswith(MAGIC):
        raise PageError(f"{page.path} is not a statistics page")
    head = _HEAD.unpack(text)
    if head[2] != _ORDER:
        raise PageError(f"{page.path} was written by a machine of another kind")
    if head[1] != VERSION:
        raise PageError(
            f"the page of process {page.pid} must have version {VERSION}, got "
            f"{head[1]}: use the memrt of the process"
        )
    if (head[3], head[4]) != (page.pid, page.started):
        raise PageError(f"{page.path} is the page of another process, by the name of the file")
    return head


def _slot(file: int, at: int) -> tuple[tuple[Any, ...], bytes] | None:
    """Return a slot and its rows, or None if the slot is empty or only partly written."""
    first = os.pread(file, _SLOT.size, at)
    if len(first) < _SLOT.size:
        return None
    size = _SLOT.unpack(first)[1]
    if not _SLOT.size <= size <= _SLOTS_AT[1] - _SLOTS_AT[0]:
        return None
    text = os.pread(file, size, at)
    if len(text) < size or zlib.adler32(text[4:]) != _SLOT.unpack_from(text)[0]:
        return None
    slot = _SLOT.unpack_from(text)
    return (slot, text[_SLOT.size :]) if slot[5] * _ROW.size == size - _SLOT.size else None


def _snapshot(page: Page, head: tuple[Any, ...], whole: tuple[tuple[Any, ...], bytes]) -> Snapshot:
    slot, rows = whole
    policies: dict[int, Row] = {}
    scopes: dict[tuple[str, ...], Stats] = {}
    paths: dict[int, tuple[str, ...]] = {0: ()}
    for kind, number, name, parent, stats in _rows(rows):
        if kind == _POLICY:
            policies[number] = Row(name, stats)
        elif kind == _SCOPE:
            paths[number] = (*paths.get(parent, ("?",)), name)
            scopes[paths[number]] = stats
    return Snapshot(
        pid=page.pid,
        runs=page.runs,
        command=_text(head[6]),
        begun=head[5] / 1e9,
        time=slot[3] / 1e9,
        resident=slot[4],
        stats=Stats(*slot[7:]),
        policies=policies,
        scopes=scopes,
        left_out=slot[6],
    )


def _rows(rows: bytes) -> Iterator[tuple[int, int, str, int, Stats]]:
    for kind, number, parent, _, name, *figures in _ROW.iter_unpack(rows):
        yield kind, number, _text(name), parent, Stats(*figures)


def _text(field: bytes) -> str:
    return printable(field.partition(b"\0")[0].decode("utf-8", "replace"))


def printable(text: str) -> str:
    """Return a text that is safe to print: no control character reaches the terminal."""
    return "".join(map(_printable_letter, text))


def _printable_letter(letter: str) -> str:
    if letter.isspace():
        return " "
    return letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}"
