"""Read single keys from the terminal."""

from __future__ import annotations

import os
import re
import select
import sys
import termios
import tty
from collections.abc import Iterator
from contextlib import contextmanager

HANGUP = "hangup"
_KEYS = re.compile(r"\x1b[\[O][0-9;]*[A-Za-z~]|.", re.DOTALL)
_NAMES = {
    "A": "up", "B": "down", "C": "right", "D": "left", "5~": "page up", "6~": "page down",
    "\r": "enter", "\n": "enter", "\x1b": "escape", "\x7f": "backspace", "\b": "backspace",
}  # fmt: skip


def keys_in(text: str) -> list[str]:
    """Return the keys in the text from a terminal: a name such as "up", or the letter."""
    keys: list[str] = _KEYS.findall(text)
    return [_NAMES.get(key[2:] if len(key) > 1 else key, key) for key in keys]


class Keyboard:
    """Keys of a terminal in cbreak mode, or no keys without a terminal.

    Parameters
    ----------
    file : int or None
        File descriptor of the terminal.
    """

    def __init__(self, file: int | None) -> None:
        self._files = [] if file is None else [file]

    def wait(self, seconds: float) -> list[str]:
        """Return the keys pressed until `seconds` have passed, at the first press."""
        pressed, _, _ = select.select(self._files, [], [], seconds)
        if not pressed:
            return []
        try:
            text = os.read(pressed[0], 256).decode(errors="ignore")
        except OSError:
            text = ""
        return keys_in(text) if text else [HANGUP]


@contextmanager
def open_keyboard() -> Iterator[Keyboard]:
    """Provide the keyboard, and restore the terminal settings at the end.

    The keyboard has no keys if standard input is not a terminal, or if another process group is in
    the foreground of the terminal.
    """
    file = sys.stdin.fileno() if sys.stdin is not None and sys.stdin.isatty() else -1
    if file < 0 or os.tcgetpgrp(file) != os.getpgrp():
        yield Keyboard(None)
        return
    before = termios.tcgetattr(file)
    tty.setcbreak(file)
    try:
        yield Keyboard(file)
    finally:
        termios.tcsetattr(file, termios.TCSADRAIN, before)
