"""The virtual machine for tests: archives of files, the choice of files, and the acceleration."""

from __future__ import annotations

import io
import os
import stat
from pathlib import Path

import guest
import guest_image
import initramfs
import pytest
import qemu


def entries(data: bytes) -> list[tuple[str, list[int], bytes]]:
    """Return the name, numbers and content of each entry of an archive."""
    found, at = [], 0
    while at < len(data) and data[at : at + 6] == b"070701":
        numbers = [int(data[at + 6 + 8 * i : at + 14 + 8 * i], 16) for i in range(13)]
        start = at + 110
        name = data[start : start + numbers[11] - 1].decode()
        content = (start + numbers[11] + 3) // 4 * 4
        at = (content + numbers[6] + 3) // 4 * 4
        found.append((name, numbers, data[content : content + numbers[6]]))
    assert data[at:].strip(b"\0") == b""
    return found


@pytest.fixture
def archive():
    return initramfs.Archive(io.BytesIO())


def test_archive_keeps_names_modes_and_content(archive, tmp_path):
    (tmp_path / "program").write_bytes(b"12345")
    (tmp_path / "program").chmod(0o755)
    (tmp_path / "link").symlink_to("program")
    archive.add_folders(["usr/bin/program"])
    archive.add_path("usr/bin/program", tmp_path / "program")
    archive.add_path("usr/bin/link", tmp_path / "link")
    archive.add("dev/console", stat.S_IFCHR | 0o600, rdev=initramfs.CONSOLE)
    archive.end()
    data = archive.file.getvalue()
    assert len(data) % initramfs.BLOCK == 0
    found = entries(data)
    names = ["usr", "usr/bin", "usr/bin/program", "usr/bin/link", "dev/console", "TRAILER!!!"]
    assert [name for name, *_ in found] == names
    assert [content for *_, content in found] == [b"", b"", b"12345", b"program", b"", b""]
    assert [oct(numbers[1]) for _, numbers, _ in found] == [
        *("0o40755", "0o40755", "0o100755", "0o120777", "0o20600", "0o0")
    ]
    assert found[4][1][9:11] == [5, 1]
    assert {tuple(numbers[2:4]) for _, numbers, _ in found} == {(0, 0)}


def test_archive_can_follow_another_archive():
    file = io.BytesIO()
    for name in ("first", "second"):
        part = initramfs.Archive(file)
        part.add(name, stat.S_IFREG, name.encode())
        part.end()
    halves = file.getvalue()[: initramfs.BLOCK], file.getvalue()[initramfs.BLOCK :]
    assert [entries(half)[0][2] for half in halves] == [b"first", b"second"]


def test_archive_leaves_out_devices(archive):
    archive.add_path("null", Path("/dev/null"))
    assert archive.file.getvalue() == b""


@pytest.mark.parametrize(
    ("name", "left_out"),
    [("usr/share/doc", True), ("usr/share/doc/a/b", True), ("usr/share/docs", False)],
)
def test_folders_of_documents_are_left_out(name, left_out):
    assert guest_image.is_left_out(name) == left_out


def test_system_files_are_listed_after_their_folders(tmp_path):
    (tmp_path / "usr/share/doc").mkdir(parents=True)
    (tmp_path / "usr/share/doc/page").touch()
    (tmp_path / "usr/share/table").touch()
    assert list(guest_image.system_files(tmp_path)) == ["usr", "usr/share", "usr/share/table"]


DEPENDENCIES = """kernel/zram.ko: kernel/pool.ko kernel/base.ko
kernel/pool.ko:
kernel/other.ko: kernel/base.ko
"""


def test_modules_come_with_the_modules_that_they_need():
    needed = guest_image.needed_modules(DEPENDENCIES, ("zram",))
    assert needed == {"kernel/zram.ko", "kernel/pool.ko", "kernel/base.ko"}
    with pytest.raises(LookupError, match="one module 'am', got 0"):
        guest_image.needed_modules(DEPENDENCIES, ("am",))


def test_installed_package_has_no_tests_and_no_scripts():
    names = guest_image.package_files("numpy")
    assert f"{guest_image.SITE}/numpy/__init__.py" in names
    assert not [name for name in names if "/tests/" in name or ".." in name]


def test_image_has_another_name_for_another_numpy(monkeypatch):
    before = guest_image.digest()
    monkeypatch.setattr(guest_image.importlib.metadata, "version", lambda name: "0.1")
    assert guest_image.digest() != before


def test_kvm_is_probed_once_per_start_of_the_machine(tmp_path, monkeypatch):
    boot, calls = tmp_path / "boot_id", []
    monkeypatch.setattr(qemu, "BOOT_ID", boot)
    monkeypatch.setattr(qemu, "can_create_machine", lambda: True)
    monkeypatch.setattr(qemu, "probe_kvm", lambda kernel: calls.append(kernel) or len(calls) > 1)
    for start, answer in (("a", False), ("a", False), ("b", True), ("b", True)):
        boot.write_text(f"{start}\n")
        assert qemu.has_kvm(tmp_path / "kernel") == answer
    assert len(calls) == 2


def test_kvm_without_guests_does_not_work(tmp_path, monkeypatch):
    monkeypatch.setattr(qemu, "command", lambda *arguments: ["sh", "-c", "echo; exit 0"])
    assert not qemu.probe_kvm(tmp_path)
    monkeypatch.setattr(qemu, "command", lambda *arguments: ["sh", "-c", "echo Kernel panic"])
    assert qemu.probe_kvm(tmp_path)
    monkeypatch.setattr(qemu, "PROBE_TIMEOUT", 0.1)
    monkeypatch.setattr(qemu, "command", lambda *arguments: ["sleep", "60"])
    assert not qemu.probe_kvm(tmp_path)


@pytest.mark.parametrize("kind", ["missing", "a file", "a folder", "another device"])
def test_device_without_kvm_creates_no_machine(tmp_path, monkeypatch, kind):
    device = tmp_path / "kvm"
    if kind == "a file":
        device.write_bytes(b"")
    if kind == "a folder":
        device.mkdir()
    monkeypatch.setattr(qemu, "KVM", Path("/dev/null") if kind == "another device" else device)
    monkeypatch.setattr(qemu, "probe_kvm", lambda kernel: pytest.fail("the probe must not run"))
    assert not qemu.can_create_machine()
    assert not qemu.has_kvm(tmp_path / "kernel")


FAKE = """#!/bin/sh
echo "$@" >> "$(dirname "$0")/calls"
case "$*" in *"-accel kvm"*) {kvm} ;; esac
for each in "$@"; do
    case "$each" in file:*) echo kill > "${{each#file:}}" ;; esac
done
"""
WORKING = "echo 'Kernel panic - not syncing: VFS'"
DENIED = "echo 'Could not access KVM kernel module: Permission denied' >&2; exit 1"
HANGING = "exec sleep 60"


@pytest.fixture
def fake_qemu(tmp_path, monkeypatch):
    """Return a function that puts a QEMU with a given KVM on the path and returns its calls."""

    def put(kvm):
        program = tmp_path / "bin" / "qemu-system-x86_64"
        program.parent.mkdir()
        program.write_text(FAKE.format(kvm=kvm))
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
        return program.with_name("calls")

    image = guest_image.Image(tmp_path / "kernel", tmp_path / "base.cpio")
    monkeypatch.setattr(guest_image, "GUEST", tmp_path)
    monkeypatch.setattr(guest_image, "make", lambda: image)
    monkeypatch.setattr(guest_image, "write_run", lambda *arguments: None)
    monkeypatch.setattr(qemu, "can_create_machine", lambda: True)
    monkeypatch.setattr(qemu, "PROBE_TIMEOUT", 5)
    return put


@pytest.mark.parametrize(
    ("kvm", "option", "accelerators"),
    [
        (WORKING, None, ["kvm", "kvm"]),
        (WORKING, "--kvm", ["kvm", "kvm"]),
        (WORKING, "--tcg", ["tcg"]),
        (DENIED, None, ["kvm", "tcg"]),
        (DENIED, "--kvm", ["kvm"]),
        (DENIED, "--tcg", ["tcg"]),
    ],
)
def test_guest_runs_under_kvm_only_after_a_good_probe(
    fake_qemu, monkeypatch, capsys, kvm, option, accelerators
):
    calls = fake_qemu(kvm)
    monkeypatch.setattr("sys.argv", ["guest", *([option] if option else []), "kill"])
    assert guest.main() == 0
    lines = calls.read_text().splitlines()
    assert [line.partition("-accel ")[2].split()[0] for line in lines] == accelerators
    assert [line.partition("-cpu ")[2].split()[0] for line in lines] == [
        {"kvm": "host", "tcg": "max"}[each] for each in accelerators
    ]
    skipped = option == "--kvm" and kvm is DENIED
    assert (guest.NO_KVM if skipped else "1 passed") in capsys.readouterr().out


def test_guest_that_hangs_under_kvm_runs_under_emulation(fake_qemu, monkeypatch, capsys):
    calls = fake_qemu(HANGING)
    monkeypatch.setattr(qemu, "PROBE_TIMEOUT", 0.3)
    monkeypatch.setattr("sys.argv", ["guest", "kill"])
    assert guest.main() == 0
    assert "-accel tcg" in calls.read_text().splitlines()[1]


def test_guest_that_hangs_after_the_probe_fails(fake_qemu, monkeypatch, capsys):
    fake_qemu('case "$*" in *-initrd*) exec sleep 60 ;; *) echo "Kernel panic"; exit ;; esac')
    monkeypatch.setattr(qemu, "RUN_TIMEOUT", {"kvm": 0.3})
    monkeypatch.setattr("sys.argv", ["guest", "kill"])
    assert guest.main() == 1
    assert "the guest did not end within 0.3 s" in capsys.readouterr().out


def test_no_image_is_made_where_no_machine_can_be_created(fake_qemu, monkeypatch, capsys):
    monkeypatch.setattr(qemu, "can_create_machine", lambda: False)
    monkeypatch.setattr(guest_image, "make", lambda: pytest.fail("an image was made"))
    monkeypatch.setattr("sys.argv", ["guest", "--kvm", "kill"])
    assert guest.main() == 0
    assert guest.NO_KVM in capsys.readouterr().out


@pytest.mark.parametrize(
    ("results", "passed"), [("first\r\nsecond\r\n", True), ("first\n", False), (None, False)]
)
def test_cases_without_a_result_have_failed(tmp_path, monkeypatch, results, passed):
    def run(image, accelerator, initrd, machine):
        if results is not None:
            initrd.with_name("results").write_text(results)
        return qemu.passed_cases(initrd.with_name("results"))

    monkeypatch.setattr(guest_image, "GUEST", tmp_path)
    monkeypatch.setattr(guest_image, "write_run", lambda *arguments: None)
    monkeypatch.setattr(qemu, "run", run)
    monkeypatch.setattr(guest, "machine_of", lambda case: "plain")
    assert guest.run_cases(["first", "second"], "tcg", None) == passed


@pytest.mark.parametrize("name", guest.case_names())
def test_case_has_a_summary(name):
    assert guest.summary(name).endswith(".")


def test_cases_run_on_the_machines_that_they_name(tmp_path, monkeypatch):
    (tmp_path / "first.py").write_text('"""First."""\n\nMACHINE = "nodes"\n')
    (tmp_path / "second.py").write_text('"""Second."""\n\nSIZE = 1\n')
    (tmp_path / "third.py").write_text('"""Third."""\n\nMACHINE = "nodes"\n')
    monkeypatch.setattr(guest_image, "CASES", tmp_path)
    groups = guest.by_machine(["first", "second", "third"])
    assert groups == {"nodes": ["first", "third"], "plain": ["second"]}


@pytest.mark.parametrize("name", guest.case_names())
def test_machine_of_a_case_exists(name):
    assert guest.machine_of(name) in qemu.MACHINES


def test_machine_adds_options_and_parameters_of_the_kernel(tmp_path):
    line = qemu.command(tmp_path, "tcg", "-initrd", "x", machine="nodes")
    assert line[line.index("-append") + 1] == f"{qemu.APPEND} hugepagesz=1G hugepages=1"
    assert "memory-backend-ram,id=ram2,size=256M" in line
    assert line[-2:] == ["-initrd", "x"]


def test_unknown_case_is_refused(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["guest", "--tcg", "nothing"])
    with pytest.raises(SystemExit):
        guest.main()
    assert "CASE must be one of " in capsys.readouterr().err


def test_call_without_cases_lists_the_cases(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["guest"])
    assert guest.main() == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == guest.case_names()
