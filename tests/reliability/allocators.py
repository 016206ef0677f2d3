"""Allocators for the conformance kit, and what the kit must say of each."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from memrt.commands.check_allocator import try_clauses

TIMEOUT = 120

OWN = ("own_default", "own_system", "own_mapped", "own_guard", "own_guard_over_mapped")

# Settings of the environment under which memrt's own are tried.
SETTINGS = ("", "MEMRT_CACHE=0", "MEMRT_DECAY=0", "MEMRT_CHECK=1")

RIGHT = ("right", "least", "memrt_allocator")

# A double, the one clause that it breaks, and what the verdict is.
WRONG = {
    "wrong_table": ("table", "fail"),
    "wrong_alignment": ("alignment", "fail"),
    "wrong_blocks": ("blocks", "fail"),
    "wrong_smallest": ("smallest", "fail"),
    "wrong_zeroed": ("zeroed", "fail"),
    "wrong_refusal": ("refusal", "fail"),
    "wrong_realloc_contents": ("realloc-contents", "fail"),
    "wrong_realloc_alignment": ("realloc-alignment", "fail"),
    "wrong_realloc_same_size": ("realloc-same-size", "fail"),
    "wrong_realloc_refusal": ("realloc-refusal", "fail"),
    "wrong_free_elsewhere": ("free-elsewhere", "crashed"),
    "wrong_threads": ("threads", "fail"),
    "wrong_fork": ("fork", "fail"),
    "wrong_usage": ("usage", "fail"),
    "wrong_release_unused": ("release-unused", "fail"),
    "wrong_destroy": ("destroy", "crashed"),
    "hanging": ("zeroed", "hung"),
    "exiting": ("zeroed", "crashed"),
}


def check_allocator(*arguments: str) -> subprocess.CompletedProcess[str]:
    """The command."""
    return subprocess.run(
        [sys.executable, "-m", "memrt", "check-allocator", *arguments],
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
    )


def verdicts(library: Path, symbol: str) -> dict[str, tuple[str, str]]:
    """For each clause the verdict on a table, and what was seen."""
    # Only one double never answers; the others have their time on a busy machine.
    timeout = 1 if symbol == "hanging" else 60
    tried = try_clauses(str(library), symbol, timeout)
    return {each.clause: (each.verdict, each.saw) for each in tried}


@contextmanager
def environment(setting: str) -> Iterator[None]:
    """Have what is started meanwhile find one MEMRT_ option, "": none."""
    before = dict(os.environ)
    for name in [name for name in before if name.startswith("MEMRT_")]:
        del os.environ[name]
    if setting:
        name, _, value = setting.partition("=")
        os.environ[name] = value
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def broken(found: dict[str, tuple[str, str]]) -> dict[str, str]:
    """The clauses that are broken, with their verdicts."""
    met = ("pass", "not applicable")
    return {clause: verdict for clause, (verdict, _) in found.items() if verdict not in met}
