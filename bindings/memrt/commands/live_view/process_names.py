"""Name the program of a process by its command line: the script first, not the interpreter."""

from __future__ import annotations

import os
import re
from pathlib import Path

from memrt._telemetry.stats_pages import Snapshot, printable

_INTERPRETER = re.compile(r"(python|pypy)[0-9.]*[a-z]?(-dbg)?")
_WITH_VALUE = frozenset({"-W", "-X", "--check-hash-based-pycs"})
_RUNNING = frozenset({"run", "leaks", "trace"})


def command_words(snapshot: Snapshot) -> list[str]:
    """Return the words of the command line.

    The words of a running process come from /proc. The statistics page of a dead process has the
    first 215 bytes of the command line, with blanks between the words. Blanks and line ends in a
    word become one blank.
    """
    if snapshot.runs:
        try:
            text = Path(f"/proc/{snapshot.pid}/cmdline").read_bytes()
        except OSError:
            text = b""
        words = text.decode("utf-8", "replace").rstrip("\0").split("\0")
        if words != [""]:
            return [" ".join(printable(word).split()) for word in words]
    return snapshot.command.split(" ")


def program_of(words: list[str]) -> str:
    """Return the command line from the script on, with the file name of the script alone.

    Options of Python, and the options of ``python -m memrt run`` before the script, are left out.
    """
    name, rest = os.path.basename(words[0]), words[1:]
    if _INTERPRETER.fullmatch(name):
        rest = _without_options(rest)
        if not rest:
            return name
    else:
        rest = [name, *rest]
    return _joined(_behind_memrt(rest))


def _without_options(words: list[str]) -> list[str]:
    """Return the words of Python's command line from the script, -m or -c on."""
    i = 0
    while i < len(words) and words[i].startswith("-") and words[i] != "-":
        word = words[i]
        if not word.startswith("--") and word[-1] in "mc":
            return [f"-{word[-1]}", *words[i + 1 :]]
        i += 2 if word in _WITH_VALUE else 1
    return words[i:]


def _behind_memrt(words: list[str]) -> list[str]:
    """Return the program that a command of memrt runs, or all words for another program."""
    start = 1 if words[:2] == ["-m", "memrt"] else 0
    name, verb = os.path.basename(words[start]), words[start + 1 : start + 2]
    if name != "memrt" or not _RUNNING.intersection(verb):
        return words
    for i in range(start + 2, len(words)):
        if words[i] in ("-m", "-c") or words[i].endswith((".py", ".pyc", ".zip", ".pyz")):
            return words[i:]
    return words


def _joined(words: list[str]) -> str:
    return " ".join([words[0] if words[0] == "-" else os.path.basename(words[0]), *words[1:]])
