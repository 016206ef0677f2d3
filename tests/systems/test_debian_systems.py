"""Bare systems and sources of Debian: mounted files are kept, and changed sources are refused."""

from __future__ import annotations

import hashlib
import tarfile

import debian_sources
import debian_systems
import pytest


@pytest.mark.parametrize("mounted", ["dev", "dev/shm"])
def test_system_with_a_mount_inside_is_not_removed(tmp_path, monkeypatch, mounted):
    monkeypatch.setattr(debian_systems, "MOUNTS", tmp_path / "mountinfo")
    system, beside = tmp_path / "system", tmp_path / "system-beside"
    (system / mounted).mkdir(parents=True)
    line = "36 35 0:6 / {} rw,relatime shared:2 - devtmpfs devtmpfs rw\n"
    debian_systems.MOUNTS.write_text(line.format(beside) + line.format(system / mounted))
    with pytest.raises(OSError, match=f"unmount {system / mounted} first"):
        debian_systems.remove(system)
    assert (system / mounted).exists()
    debian_systems.MOUNTS.write_text(line.format(beside))
    debian_systems.remove(system)
    assert not system.exists()


@pytest.fixture
def pool(tmp_path, monkeypatch):
    """Return a pool with one source of the expected SHA-256."""
    (tmp_path / "zlib-1.0" / "doc").mkdir(parents=True)
    (tmp_path / "zlib-1.0" / "configure").write_text("old")
    archive = tmp_path / "zlib_1.0.orig.tar.gz"
    with tarfile.open(archive, "w:gz") as source:
        source.add(tmp_path / "zlib-1.0", "zlib-1.0")
    digest = hashlib.sha256(archive.read_bytes()).hexdigest()
    monkeypatch.setattr(debian_sources, "SOURCES", {"zlib": (archive.name, digest)})
    monkeypatch.setattr(debian_sources, "POOLS", ("file:///missing", tmp_path.as_uri()))
    return tmp_path


def test_source_replaces_an_older_one_without_leftovers(pool):
    (pool / "work" / "zlib" / "old").mkdir(parents=True)
    folder = debian_sources.unpack("zlib", pool / "work")
    assert sorted(path.name for path in folder.iterdir()) == ["configure", "doc"]
    assert [path.name for path in folder.parent.iterdir()] == ["zlib"]


def test_source_with_another_digest_is_refused(pool, capsys):
    (pool / "zlib_1.0.orig.tar.gz").write_bytes(b"changed")
    (pool / "work").mkdir()
    with pytest.raises(OSError, match="cannot download zlib_1"):
        debian_sources.unpack("zlib", pool / "work")
    assert "has another SHA-256 than" in capsys.readouterr().err
    assert not list((pool / "work").iterdir())
