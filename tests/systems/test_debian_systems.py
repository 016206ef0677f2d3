"""Bare systems of Debian: files of the machine that a system shows are never removed."""

from __future__ import annotations

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
