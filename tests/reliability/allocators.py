"""List the allocators for the conformance kit, with the expected verdicts.

The symbols belong to own.c (allocators of memrt) and doubles.c (test doubles).
"""

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

# Environment settings under which the allocators of memrt are tried. "": no variable.
SETTINGS = ("", "MEMRT_CACHE=0", "MEMRT_DECAY=0", "MEMRT_CHECK=1")

RIGHT = ("right", "growing", "least", "memrt_allocator")

# Symbol of a test double, the only clause broken by the double, and the verdict for the clause.
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
    "wrong_try_expand": ("try-expand", "fail"),
    "wrong_usable_size": ("usable-size", "fail"),
    "wrong_good_size": ("good-size", "fail"),
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
    """Run `python -m memrt check-allocator` with these arguments."""
    return subprocess.run(
        [sys.executable, "-m", "memrt", "check-allocator", *arguments],
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
    )


def verdicts(library: Path, symbol: str) -> dict[str, tuple[str, str]]:
    """Return for each clause the verdict on an allocator table, with the observation."""
    # The double `hanging` never returns. All other allocators get 60 seconds, for busy machines.
    timeout = 1 if symbol == "hanging" else 60
    tried = try_clauses(str(library), symbol, timeout)
    return {each.clause: (each.verdict, each.saw) for each in tried}


@contextmanager
def environment(setting: str) -> Iterator[None]:
    """Set a single MEMRT_ option ("": no option) in the environment of child processes.

    All other MEMRT_ variables are removed. The environment is restored at the end.
    """
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
    """Return the broken clauses with their verdicts."""
    met = ("pass", "not applicable")
    return {clause: verdict for clause, (verdict, _) in found.items() if verdict not in met}
