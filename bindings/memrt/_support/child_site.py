"""Reach Python processes that start later, by a folder at the front of their PYTHONPATH."""

from __future__ import annotations

import os

_SITE = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "_profile/_site")


def add_site() -> bool:
    """Add the folder with memrt's sitecustomize. Return whether the folder was missing."""
    paths = os.environ.get("PYTHONPATH")
    if paths is not None and _SITE in paths.split(os.pathsep):
        return False
    # Empty entries stay: an empty entry means the current folder.
    os.environ["PYTHONPATH"] = f"{_SITE}{os.pathsep}{paths}" if paths else _SITE
    return True


def remove_site() -> None:
    """Remove the folder, and the variable if nothing else is left."""
    paths = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    if _SITE in paths:
        paths.remove(_SITE)
    if paths:
        os.environ["PYTHONPATH"] = os.pathsep.join(paths)
    else:
        os.environ.pop("PYTHONPATH", None)
