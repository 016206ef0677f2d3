"""Define the exception that commands raise on failure, and write messages."""

import contextlib
import sys


class CommandError(Exception):
    """A command failed. The message is one sentence: the problem and the remedy.

    Only `main` prints the message.
    """


def is_terminal() -> bool:
    """Return whether standard error is a terminal."""
    try:
        return sys.stderr.isatty()
    except (ValueError, AttributeError):  # closed, or None
        return False


def say(*lines: str) -> None:
    """Write lines on standard error.

    Failure: where the program closed or replaced standard error, nothing is written. Without the
    stream, `print` would write on standard output.
    """
    with contextlib.suppress(OSError, ValueError, AttributeError):
        if lines and sys.stderr is not None:
            print(*lines, sep="\n", file=sys.stderr, flush=True)
