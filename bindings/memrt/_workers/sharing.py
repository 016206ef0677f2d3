"""Settings for the workers of this process, put in force and removed, and the workers' records."""

from __future__ import annotations

import contextlib
import json
import multiprocessing.process
import os
import shutil
from pathlib import Path
from typing import Any

from memrt._support.child_site import add_site, remove_site
from memrt._support.process_folder import make_folder, remove_folder
from memrt._workers import member
from memrt._workers.results import WorkersStats, collect, load_record
from memrt._workers.setup import Setup

_TICKET = "_memrt_workers"


class Sharing:
    """Settings in force for new workers, from the constructor to stop().

    Parameters
    ----------
    settings : Setup
        Settings from `capture`; the folders are added here.

    Raises
    ------
    OSError
        The temporary folder of the records cannot be created.
    """

    def __init__(self, settings: Setup) -> None:
        self.folder = make_folder()
        self._outer = member.outer_folders()
        settings["folders"] = [self.folder, *self._outer]
        self._before = os.environ.get(member.VARIABLE)
        self._ticket = _configuration().get(_TICKET)
        self._added = False
        self._settings = member.set_for_children(settings)
        try:
            self._added = add_site()
            text = os.environ[member.VARIABLE] = json.dumps(settings)
            _configuration()[_TICKET] = member.Ticket(text)
        except BaseException:
            self.stop()
            shutil.rmtree(self.folder, ignore_errors=True)
            raise

    def stats(self) -> WorkersStats:
        """Return the statistics of the workers so far."""
        return collect(_records(Path(self.folder)).values())

    def stop(self) -> None:
        """Restore the settings for children, the environment and multiprocessing."""
        member.set_for_children(self._settings)
        if self._added:
            remove_site()
        if self._before is None:
            os.environ.pop(member.VARIABLE, None)
        else:
            os.environ[member.VARIABLE] = self._before
        if self._ticket is None:
            _configuration().pop(_TICKET, None)
        else:
            _configuration()[_TICKET] = self._ticket

    def collect(self) -> WorkersStats:
        """Return the final statistics, and remove the records. Requires stop() first."""
        ended = remove_folder(self.folder)
        try:
            records = _records(ended)
            found = collect(records.values())
            self._pass_on(records)
        finally:
            shutil.rmtree(ended, ignore_errors=True)
        return found

    def _pass_on(self, records: dict[str, dict[str, Any]]) -> None:
        """Remove the pages of ended workers. Blocks around this process get the killed workers."""
        for name, record in records.items():
            path = record.pop("page").path
            if record["state"] == "running":
                continue
            if record["state"] == "killed":
                for folder in self._outer:
                    member.write_record(folder, name, record)
            with contextlib.suppress(OSError):
                path.unlink(missing_ok=True)


def _records(folder: Path) -> dict[str, dict[str, Any]]:
    try:
        names = [name for name in os.listdir(folder) if not name.startswith(".")]
    except FileNotFoundError:
        return {}
    found = {name: load_record(folder / name) for name in names}
    return {name: record for name, record in found.items() if record is not None}


def _configuration() -> dict[str, Any]:
    """Return the configuration that multiprocessing copies to its child processes."""
    found: dict[str, Any] = multiprocessing.process.current_process()._config  # type: ignore[attr-defined]
    return found
