"""Write the statistics of each update to a file: JSON lines, or CSV."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Iterator
from typing import Any

from memrt._policy.scope_tree import scope_name
from memrt._stats.snapshot import Stats
from memrt._telemetry.stats_pages import Snapshot
from memrt.commands.live_view.process_names import command_words, program_of
from memrt.commands.output.errors import CommandError
from memrt.commands.output.table import text_cell

_TEXTS = ("program", "name")
FIELDS = ("time", "pid", "program", "kind", "name", "resident", *Stats.__dataclass_fields__)


class RecordFile:
    """File that grows by the statistics of each update, and is complete at any moment.

    Parameters
    ----------
    path : str
        File to write: CSV with a header if the name ends in ".csv", else JSON lines.
    force : bool
        Replace an existing file.

    Raises
    ------
    CommandError
        The file cannot be created, or exists and `force` is false.
    """

    def __init__(self, path: str, force: bool) -> None:
        self._path = path
        self._times: dict[tuple[int, float], float] = {}
        try:
            if force and os.path.lexists(path) and not os.path.isfile(path):
                raise CommandError(f"cannot write {path!r}: the path is not a regular file")
            self._file = open(  # noqa: SIM115 - open while the view runs
                path, "w" if force else "x", encoding="utf-8", newline=""
            )
        except FileExistsError:
            raise CommandError(
                f"{path!r} exists already: name another file, or add --force"
            ) from None
        except OSError as error:
            raise self._failure(error) from None
        self._csv = csv.DictWriter(self._file, FIELDS) if path.endswith(".csv") else None
        if self._csv is not None:
            self._attempt(self._csv.writeheader)

    def add(self, snapshots: list[Snapshot], *, whole: bool) -> int:
        """Write the snapshots that are newer than the last snapshot of their process.

        `whole` also writes the policies and scopes. Returns the number of rows.

        Raises
        ------
        CommandError
            The file cannot be written.
        """
        rows: list[dict[str, Any]] = []
        for one in snapshots:
            key = (one.pid, one.begun)
            if self._times.get(key) != one.time:
                self._times[key] = one.time
                rows += _rows(one, whole)
        self._attempt(self._write, rows)
        return len(rows)

    def close(self) -> None:
        """Close the file."""
        self._attempt(self._file.close)

    def _write(self, rows: list[dict[str, Any]]) -> None:
        for row in rows:
            if self._csv is not None:
                self._csv.writerow(row | {key: text_cell(row[key]) for key in _TEXTS})
            else:
                self._file.write(json.dumps(row) + "\n")

    def _attempt(self, act: Any, *arguments: Any) -> None:
        try:
            act(*arguments)
            if not self._file.closed:
                self._file.flush()
        except OSError as error:
            raise self._failure(error) from None

    def _failure(self, error: OSError) -> CommandError:
        return CommandError(f"cannot write {self._path!r}: {error.strerror}")


def _rows(one: Snapshot, whole: bool) -> Iterator[dict[str, Any]]:
    """Yield a row with FIELDS for the process, then for each policy and scope."""
    head = {"time": one.time, "pid": one.pid, "program": program_of(command_words(one))}
    resident = {"resident": one.resident}
    yield {**head, "kind": "process", "name": "", **resident, **one.stats.to_dict()}
    if not whole:
        return
    for index, row in one.policies.items():
        name = f"{row.name} #{index}"
        yield {**head, "kind": "policy", "name": name, "resident": None, **row.stats.to_dict()}
    for path, stats in one.scopes.items():
        name = scope_name(path)
        yield {**head, "kind": "scope", "name": name, "resident": None, **stats.to_dict()}
