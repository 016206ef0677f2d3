"""Hints for the command line: similar names, misplaced options, commands that show more."""

from __future__ import annotations

import argparse
import difflib
import re
import shlex
from collections.abc import Iterable
from typing import Any, NoReturn

_UNKNOWN_VERB = re.compile(r"argument COMMAND: invalid choice: '([^']*)'")

_MOST_LETTERS = 120  # of a program in a hint


def similar_text(word: str, known: Iterable[str]) -> str:
    """Return `: did you mean X?` for the most similar known word, or an empty text."""
    found = difflib.get_close_matches(word, list(known), n=1, cutoff=0.6)
    return f": did you mean {found[0]}?" if found else ""


class Parser(argparse.ArgumentParser):
    """A parser whose messages name similar commands and options."""

    commands: Iterable[str] = ()
    """Names of all commands."""

    def parse_command(
        self, words: list[str], command: argparse.ArgumentParser | None
    ) -> argparse.Namespace:
        """Parse words like parse_args(). Unknown options are an error of the command's parser."""
        chosen, unknown = self.parse_known_args(words)
        if unknown:
            parser = command or self
            similar = similar_text(unknown[0].partition("=")[0], parser._option_string_actions)
            parser.error(f"unrecognized arguments: {shlex.join(unknown)}{similar}")
        return chosen

    def error(self, message: str) -> NoReturn:
        """Print the usage and the message, and exit with status 2."""
        found = _UNKNOWN_VERB.match(message)
        if found is not None:
            message = f"unknown command {found[1]!r}{similar_text(found[1], self.commands)}"
        super().error(message)


def misplaced_hint(parser: argparse.ArgumentParser, program: list[str]) -> list[str]:
    """Return a line about options behind the program that memrt has, too; or no line."""
    own = {option for option in parser._option_string_actions if option.startswith("--")}
    words = [word.partition("=")[0] for word in program[1:]]
    found = [word for word in dict.fromkeys(words) if word in own - {"--help"}]
    if not found:
        return []
    return [
        f"memrt: {' '.join(found)} behind the program went to the program: options of memrt "
        "precede the program"
    ]


def more_line(program: list[str], findings: list[dict[str, Any]], tracked: bool) -> str:
    """Return a line with the command that shows more than the summary.

    Without tracking, the command leads to findings. A long program, such as code after -c, becomes
    three dots.
    """
    rule = findings[0]["rule"] if findings else ""
    general = "run --html report.html" if tracked else "run --track"
    command = {"retained": "retention", "growth": "leaks", "lost": "leaks"}.get(rule, general)
    words = shlex.join(program)
    short = words if words.isprintable() and len(words) <= _MOST_LETTERS else "..."
    return f"more: python -m memrt {command} {short}"
