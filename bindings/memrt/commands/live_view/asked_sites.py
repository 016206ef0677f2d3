"""Ask a running process for its allocation sites, for the view of one process."""

from __future__ import annotations

from typing import Any

from memrt._support.units import human_bytes, plural
from memrt.commands.attaching.attach import ask
from memrt.commands.attaching.target import target_of
from memrt.commands.live_view.tables import Row, Table
from memrt.commands.output.errors import CommandError

_SECONDS = 2.0  # until a process whose main thread runs no Python code is left alone


def ask_for_sites(pid: int) -> Table:
    """Return a table of the lines with most live bytes, or a line with the reason for its absence.

    The main thread of the process reads the sites, as for ``python -m memrt attach``.
    """
    try:
        box = ask(target_of(pid), {"action": "sites"}, _SECONDS, "press a again")
        box.remove()
        return _table(pid, box.answer)
    except CommandError as error:
        return Table(f"allocation sites: {error}")


def _table(pid: int, answer: dict[str, Any]) -> Table:
    """Return the table of an answer. A process of another user may answer anything."""
    try:
        rows = [
            Row([_printable(place), human_bytes(int(nbytes)), f"{int(blocks):,}"])
            for place, nbytes, blocks in answer["sites"]
        ]
        more = int(answer["more"])
    except (KeyError, TypeError, ValueError, OverflowError):
        raise CommandError(f"process {pid} wrote no answer") from None
    if not rows and not answer.get("tracked"):
        return Table(f"allocation sites: tracking is off: python -m memrt attach {pid} --track")
    end = f"; {plural(more, 'more line')}" if more else ""
    return Table(f"allocation sites of the tracked buffers{end}", ["site", "live", "blocks"], rows)


def _printable(text: object) -> str:
    return "".join(letter if letter.isprintable() else "?" for letter in str(text))
