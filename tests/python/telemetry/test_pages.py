"""Statistics pages: contents that a reader accepts, and contents that a reader refuses."""

from __future__ import annotations

import contextlib
import os
import struct
import subprocess
import sys
import time
import zlib
from pathlib import Path

import memrt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from memrt._telemetry import stats_pages
from memrt._telemetry.stats_pages import Page, PageError

SLOTS_AT = (4096, 4096 + (256 << 10))
STARTED = 12345


def head(pid: int, version: int = 1, magic: bytes = b"memrtpg\0", order: int = 0x01020304) -> bytes:
    return struct.pack("=8s2I3Q216s", magic, version, order, pid, STARTED, 10**18, b"a program")


def row(kind: int, number: int, name: bytes, parent: int, live: int) -> bytes:
    figures = [0] * 17
    figures[6] = live
    return struct.pack("=4I64s17Q", kind, number, parent, 0, name, *figures)


def slot(serial: int, live: int, *rows: bytes) -> bytes:
    figures = [0] * 17
    figures[6] = live
    size = 176 + sum(map(len, rows))
    text = struct.pack("=I3Q2I17Q", size, serial, 2 * 10**18, 4096, len(rows), 0, *figures)
    text += b"".join(rows)
    return struct.pack("=I", zlib.adler32(text)) + text


@pytest.fixture
def folder(tmp_path) -> Path:
    path = tmp_path / "pages"
    path.mkdir(mode=0o700)
    return path


def write(folder: Path, *slots: bytes, pid: int = 7, first: bytes | None = None) -> Page:
    path = folder / f"{pid}-{STARTED}"
    file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    os.pwrite(file, head(pid) if first is None else first, 0)
    for at, text in zip(SLOTS_AT, slots, strict=False):
        os.pwrite(file, text, at)
    os.close(file)
    return Page(path, pid, STARTED)


def test_reader_returns_the_values_written_to_a_page(folder):
    rows = (
        row(1, 0, b"default", 0, 5),
        row(1, 3, b"mine", 0, 6),
        row(2, 9, b"outer", 0, 7),
        row(2, 10, b"inner", 9, 8),
    )
    told = stats_pages.read(write(folder, slot(1, 100, *rows)))
    assert (told.pid, told.runs, told.command) == (7, False, "a program")
    assert (told.begun, told.time, told.resident, told.left_out) == (1e9, 2e9, 4096, 0)
    assert told.stats.live == 100
    assert {i: (r.name, r.stats.live) for i, r in told.policies.items()} == {
        0: ("default", 5),
        3: ("mine", 6),
    }
    assert {path: stats.live for path, stats in told.scopes.items()} == {
        ("outer",): 7,
        ("outer", "inner"): 8,
    }


@pytest.mark.parametrize("serials", [(1, 2), (2, 1), (5, 4)])
def test_slot_with_the_higher_serial_number_is_read(folder, serials):
    told = stats_pages.read(write(folder, *(slot(serial, serial * 10) for serial in serials)))
    assert told.stats.live == max(serials) * 10


@pytest.mark.parametrize("end", [0, 3, 100, 175, 176, 200, 391])
def test_truncated_slot_falls_back_to_the_other_slot(folder, end):
    half = slot(9, 90, row(1, 0, b"default", 0, 90))
    assert len(half) == 392
    assert stats_pages.read(write(folder, slot(8, 80), half[:end])).stats.live == 80


def test_torn_slot_falls_back_to_the_other_slot(folder):
    older, newer = (slot(n, n, row(1, 0, b"default", 0, n)) for n in (7, 9))
    torn = newer[:250] + older[250:]
    assert stats_pages.read(write(folder, slot(8, 80), torn)).stats.live == 80


def test_page_without_a_valid_slot_is_refused(folder):
    page = write(folder, slot(1, 10)[:-1] + b"!", slot(2, 10)[:50])
    with pytest.raises(PageError, match="process 7 has no complete slot"):
        stats_pages.read(page)


@pytest.mark.parametrize(
    ("first", "why"),
    [
        (b"", "process 7 has not written statistics yet"),
        (b"memrtpg\0" + b"\0" * 20, "is not a statistics page"),
        (head(7, magic=b"PK\3\4zip!"), "is not a statistics page"),
        (head(7, version=2), "must have version 1, got 2: use the memrt of the"),
        (head(7, order=0x04030201), "a machine of another kind"),
        (head(8), "the page of another process, by the name of the file"),
    ],
)
def test_invalid_page_header_is_refused_with_a_reason(folder, first, why):
    page = write(folder, *([slot(1, 10)] if len(first) == 256 else []), first=first)
    with pytest.raises(PageError, match=why):
        stats_pages.read(page)


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o666])
def test_page_open_to_group_or_all_users_is_refused(folder, mode):
    page = write(folder, slot(1, 10))
    page.path.chmod(mode)
    with pytest.raises(PageError, match="must be a file that you own, with mode 0600"):
        stats_pages.read(page)


def test_page_that_is_a_link_or_fifo_is_refused(folder):
    real = write(folder, slot(1, 10))
    link = Page(folder / f"8-{STARTED}", 8, STARTED)
    link.path.symlink_to(real.path)
    with pytest.raises(PageError, match="cannot be read"):
        stats_pages.read(link)
    os.mkfifo(folder / "9-1")
    pipe = Page(folder / "9-1", 9, 1)
    with pytest.raises(PageError):
        stats_pages.read(pipe)


def test_folder_with_mode_0755_is_refused(folder):
    folder.chmod(0o755)
    with pytest.raises(PageError, match="must be a folder that you own, with mode 0700"):
        stats_pages.pages(folder)
    with pytest.raises(PageError, match="must be a folder that you own, with mode 0700"):
        stats_pages.clean(folder)


def test_link_in_place_of_the_folder_is_refused(folder, tmp_path):
    link = tmp_path / "link"
    link.symlink_to(folder)
    with pytest.raises(PageError, match="must be a folder that you own, with mode 0700"):
        stats_pages.pages(link)


def test_missing_folder_has_no_pages(tmp_path):
    assert stats_pages.pages(tmp_path / "none") == []
    assert stats_pages.clean(tmp_path / "none") == []


def test_files_with_other_names_are_ignored_and_kept(folder):
    write(folder, slot(1, 10))
    for name in ("notes", "7", "x-1", "0-1", "1-2-3", "-1-2"):
        (folder / name).write_text("mine")
    assert [page.pid for page in stats_pages.pages(folder)] == [7]
    stats_pages.clean(folder)
    assert len(list(folder.iterdir())) == 6


def test_clean_keeps_pages_of_running_processes(folder):
    began = stats_pages._process(os.getpid())[1]
    own = folder / f"{os.getpid()}-{began}"
    own.touch(0o600)
    reused = folder / f"{os.getpid()}-{began - 1}"
    reused.touch(0o600)
    write(folder, slot(1, 10), pid=2**31 - 1)
    assert {page.pid for page in stats_pages.clean(folder)} == {os.getpid(), 2**31 - 1}
    assert list(folder.iterdir()) == [own]


def test_zombie_counts_as_not_running():
    child = subprocess.Popen([sys.executable, "-c", ""])
    began = stats_pages._process(child.pid)[1]
    until = time.monotonic() + 30
    while stats_pages._process(child.pid)[0] != "Z":
        assert time.monotonic() < until
        time.sleep(0.01)
    assert not Page(Path(), child.pid, began).runs
    child.wait()


def test_page_with_the_latest_start_of_a_pid_is_used(folder):
    for started in (5, 900, 40):
        (folder / f"7-{started}").touch(0o600)
    assert stats_pages.page_of(7, folder).started == 900


@pytest.mark.parametrize(
    ("pid", "why"),
    [
        (2**31 - 1, "no process 2147483647 is running, and no page of process 2147483647 is left"),
        (os.getpid(), "does not share statistics: start the program with MEMRT_SHARE=1"),
    ],
    ids=["ended", "running"],
)
def test_missing_page_error_depends_on_process_existence(folder, pid, why):
    with pytest.raises(PageError, match=why):
        stats_pages.page_of(pid, folder)


def test_control_characters_in_names_are_replaced(folder):
    told = stats_pages.read(write(folder, slot(1, 1, row(1, 0, b"\x1b[2Jevil\n\xff", 0, 1))))
    assert told.policies[0].name == "\ufffd[2Jevil \ufffd"


@given(st.binary(max_size=2000), st.integers(0, 900), st.booleans())
def test_random_bytes_are_refused_or_leave_the_values(tmp_path_factory, noise, at, in_slot):
    folder = tmp_path_factory.mktemp("noise")
    folder.chmod(0o700)
    page = write(folder, slot(3, 30, row(2, 9, b"outer", 77, 7)))
    with page.path.open("r+b") as file:
        file.seek(SLOTS_AT[0] + at if in_slot else at)
        file.write(noise)
    with contextlib.suppress(PageError):
        assert stats_pages.read(page).stats.live == 30


SHARES = """
import os, sys, memrt
kept = memrt.empty(3_000_000, "u1")
print(os.getpid(), flush=True)
sys.stdin.read()
"""


def test_reader_reads_pages_that_the_library_writes():
    with subprocess.Popen(
        [sys.executable, "-c", SHARES],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        env={**os.environ, "MEMRT_SHARE": "1"},
    ) as process:  # fmt: skip
        pid = int(process.stdout.readline())
        until = time.monotonic() + 30
        while (told := stats_pages.read(stats_pages.page_of(pid))).stats.live < 3_000_000:
            assert time.monotonic() < until
            time.sleep(0.02)
        assert told.runs
        assert told.stats.to_dict().keys() == memrt.stats().to_dict().keys()
        assert told.policies[0].stats.live == told.stats.live
        assert told.resident > 3_000_000
        assert SHARES.split()[0] in told.command
        assert abs(told.time - time.time()) < 60
        process.stdin.close()
        assert process.wait(timeout=30) == 0
    with pytest.raises(PageError, match=f"no process {pid} is running"):
        stats_pages.page_of(pid)
