"""Pages: what processes that share their statistics tell, also after they were killed.

runtime/share.h says how a page is laid out; a page of another version is refused.
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

from memrt._stats import Stats

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
    """Why a page cannot be read, in a sentence."""


@dataclass(frozen=True)
class Page:
    """The file of one process. That it runs is known by its id and by when it began."""

    path: Path
    pid: int
    started: int

    @property
    def runs(self) -> bool:
        """Whether the process does, and is no zombie."""
        state, started = _process(self.pid)
        return started == self.started and state not in "ZX"


@dataclass(frozen=True)
class Row:
    """A policy or a scope."""

    name: str
    stats: Stats


@dataclass(frozen=True)
class Snapshot:
    """What a process told last."""

    pid: int
    runs: bool
    command: str
    begun: float
    """When it began to share, in seconds since 1970."""
    time: float
    """When it told this, likewise."""
    resident: int
    """Bytes that it had in memory."""
    stats: Stats
    policies: dict[int, Row]
    scopes: dict[tuple[str, ...], Stats]
    left_out: int
    """Policies and scopes that the page has no room for."""

    def to_dict(self) -> dict[str, Any]:
        """As ``python -m memrt top --json`` has it."""
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
    """Where the pages of this user are."""
    return Path(f"/dev/shm/memrt-{os.geteuid()}")


def _process(pid: int) -> tuple[str, int]:
    """State of a process and when it began, ("X", -1) where there is none."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return "X", -1
    fields = text.rpartition(")")[2].split()
    return fields[0], int(fields[19])


def _is_own(about: os.stat_result, is_kind: Any) -> bool:
    return is_kind(about.st_mode) and about.st_uid == os.geteuid() and not about.st_mode & 0o077


def _check_folder(folder: Path) -> bool:
    """Whether there is one; one that is not this user's alone is refused."""
    try:
        about = folder.lstat()
    except FileNotFoundError:
        return False
    if not _is_own(about, stat.S_ISDIR):
        raise PageError(f"{folder} is no folder of yours alone: what lies in it is not believed")
    return True


def pages(folder: Path | None = None) -> list[Page]:
    """All pages of this user, by process; files that are named otherwise are passed over.

    :raises PageError: when the folder is not this user's alone.
    """
    folder = own_folder() if folder is None else folder
    found = []
    for name in os.listdir(folder) if _check_folder(folder) else ():
        numbers = _NAME.fullmatch(name)
        if numbers:
            found.append(Page(folder / name, int(numbers[1]), int(numbers[2])))
    return sorted(found, key=lambda page: (page.pid, page.started))


def page_of(pid: int, folder: Path | None = None) -> Page:
    """That of a process, or the last of those that had its number.

    :raises PageError: when there is none; says why.
    """
    own = [page for page in pages(folder) if page.pid == pid]
    if own:
        return own[-1]
    try:
        owner = Path(f"/proc/{pid}").stat().st_uid
    except OSError:
        raise PageError(f"there is no process {pid}, and none of that number left a page") from None
    if owner != os.geteuid():
        raise PageError(f"process {pid} is another user's: nobody else can read its statistics")
    raise PageError(
        f"process {pid} does not share its statistics: start it with MEMRT_SHARE=1 or by "
        "'python -m memrt run --share'"
    )


def clean(folder: Path | None = None) -> list[Page]:
    """Remove the pages of processes that run no more; which these were."""
    gone = [page for page in pages(folder) if not page.runs]
    for page in gone:
        page.path.unlink(missing_ok=True)
    return gone


def read(page: Page) -> Snapshot:
    """What a page says now.

    :raises PageError: when it is none, of another version, or has nothing whole in it.
    """
    for _ in range(3):  # its process may write one slot while the other is read
        with _opened(page) as file:
            head = _head(page, os.pread(file.fileno(), _HEAD.size, 0))
            slots = [_slot(file.fileno(), at) for at in _SLOTS_AT]
        whole = [slot for slot in slots if slot is not None]
        if whole:
            return _snapshot(page, head, max(whole, key=lambda slot: slot[0][2]))
    raise PageError(f"the page of process {page.pid} has nothing whole in it")


def _opened(page: Page) -> Any:
    try:
        file = os.fdopen(os.open(page.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb", 0)
    except FileNotFoundError:
        raise PageError(f"process {page.pid} has ended and taken its page along") from None
    except OSError as error:
        raise PageError(f"{page.path} cannot be read: {error.strerror}") from None
    if not _is_own(os.fstat(file.fileno()), stat.S_ISREG):
        file.close()
        raise PageError(f"{page.path} is no file of yours alone: what is in it is not believed")
    return file


def _head(page: Page, text: bytes) -> tuple[Any, ...]:
    if text == b"":
        raise PageError(f"process {page.pid} has told nothing yet")
    if len(text) < _HEAD.size or not text.startswith(MAGIC):
        raise PageError(f"{page.path} is no page of memrt")
    head = _HEAD.unpack(text)
    if head[2] != _ORDER:
        raise PageError(f"{page.path} was written by a machine of another kind")
    if head[1] != VERSION:
        raise PageError(
            f"the page of process {page.pid} is of version {head[1]}, and this memrt reads "
            f"{VERSION}: use the memrt that the process has"
        )
    if (head[3], head[4]) != (page.pid, page.started):
        raise PageError(f"{page.path} is the page of another process than it is named after")
    return head


def _slot(file: int, at: int) -> tuple[tuple[Any, ...], bytes] | None:
    """A slot and its rows; None: it is empty, or was not written to its end."""
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
    return "".join(map(_shown, field.partition(b"\0")[0].decode("utf-8", "replace")))


def _shown(letter: str) -> str:
    """What neither moves the cursor nor does anything else to a terminal."""
    if letter.isspace():
        return " "
    return letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}"
