"""Membership of a worker process: settings of the parent here, statistics in files of the parent.

A record is a JSON file in a folder of the parent. The record exists from the start of the worker,
and gets the last figures at the end. If the worker is killed, the statistics page of the worker has
the figures of at most a tenth of a second before.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import secrets
import sys
from typing import Any

from memrt._policy.live_policies import policies
from memrt._policy.scope_tree import scopes
from memrt._stats.snapshot import reset_peak
from memrt._support.executing import before_exec
from memrt._support.options import set_option
from memrt._support.process_folder import start_time
from memrt._telemetry.stats_json import stats_document
from memrt._workers.setup import Setup, apply, capture

VARIABLE = "_MEMRT_WORKERS"
"""Environment variable with the settings for new interpreters, as JSON."""


class _Membership:
    """This process as a worker, from join() on."""

    def __init__(self, setup: Setup, forked: bool) -> None:
        self.setup = setup
        self._pid = os.getpid()
        started = start_time(self._pid)
        self._name = f"{self._pid}-{started}-{secrets.token_hex(4)}"
        self._record: dict[str, Any] = {
            "pid": self._pid,
            "parent": os.getppid(),
            "started": started,
            "command": _command(),
            # After a fork, settings that follow the parent are in force already.
            "problems": [] if forked and setup["follows"] else apply(setup),
            "base": _restart_peaks() if forked else None,
            "last": None,
        }
        try:
            set_option("share", True)
        except ValueError as error:
            self._record["problems"].append(str(error))
        self._write()

    def is_of(self, folders: list[str]) -> bool:
        return self._pid == os.getpid() and self.setup["folders"] == folders

    def update(self, setup: Setup) -> None:
        """Put the settings of the parent in force, read at the start of the worker."""
        self.setup = setup
        self._record["problems"] += apply(setup)
        self._write()

    def finish(self) -> None:
        if self._pid == os.getpid():
            self._record["last"] = stats_document()
            self._write()

    def _write(self) -> None:
        for folder in self.setup["folders"]:
            write_record(folder, self._name, self._record)


def write_record(folder: str, name: str, record: dict[str, Any]) -> None:
    """Write a record in one step. Failure: without the folder, nothing happens."""
    beside = os.path.join(folder, f".{name}")
    with contextlib.suppress(OSError):
        with open(beside, "w", encoding="ascii") as file:
            json.dump(record, file)
        os.replace(beside, os.path.join(folder, name))


def _command() -> str:
    words = getattr(sys, "argv", None) or sys.orig_argv
    return " ".join(map(str, words))[:200]


def _restart_peaks() -> dict[str, Any]:
    """Restart all peaks at the inherited bytes, and return the inherited figures."""
    reset_peak()
    for policy in policies():
        reset_peak(policy)
    for scope in scopes():
        scope.reset_peak()
    return stats_document()


# --- The state of this process. ---

_membership: _Membership | None = None
_for_children: Setup | None = None  # settings for children of this process
_program_folders: list[str] = []  # of `run --workers`, in the process of the program
_prepared = False


def set_for_children(setup: Setup | None) -> Setup | None:
    """Set the settings for forked children. Return the settings before."""
    global _for_children
    before, _for_children = _for_children, setup
    return before


def join(setup: Setup, forked: bool = False) -> None:
    """Make this process a worker, with `setup` for its children too.

    Without any of the folders nothing happens: the parent has ended.
    """
    global _membership
    if _membership is not None and _membership.is_of(setup["folders"]):
        if setup["follows"]:
            _membership.update(setup)
            set_for_children(setup)
        return
    if any(map(os.path.isdir, setup["folders"])):
        _prepare()
        _membership = _Membership(setup, forked)
        set_for_children(setup)


def outer_folders() -> list[str]:
    """Return the folders that this process reports to as a worker."""
    if _membership is None:
        return list(_program_folders)
    return list(_membership.setup["folders"])


def lead_program(folders: list[str]) -> None:
    """Set the folders for the records of blocks in the process of the program."""
    global _program_folders
    _program_folders = folders


def join_at_start() -> None:
    """Make a new interpreter a worker, by the environment. Called by sitecustomize.

    The resource trackers of multiprocessing and loky allocate no arrays, and do not join.
    """
    if not any("resource_tracker import main" in word for word in sys.orig_argv):
        join(json.loads(os.environ[VARIABLE]))


def _finish() -> None:
    if _membership is not None:
        with contextlib.suppress(Exception):
            _membership.finish()


def _forked() -> None:
    if _for_children is not None:
        with contextlib.suppress(Exception):
            join(_for_children, forked=True)


class _Ender:
    """Object that registers the end in the children of multiprocessing, which skip atexit."""

    def register(self) -> None:
        from multiprocessing.util import Finalize

        Finalize(None, _finish, exitpriority=-1000)


_ender = _Ender()


def _prepare() -> None:
    """Register the functions for the end of a worker, once. Forked children keep them."""
    global _prepared
    if not _prepared:
        import multiprocessing.util

        _prepared = True
        multiprocessing.util.register_after_fork(_ender, _Ender.register)
        atexit.register(_finish)
        before_exec(_finish)


class Ticket:
    """Settings in the configuration of multiprocessing, which each child process unpickles.

    A fork server may be older than the settings, so its environment lacks the settings.
    """

    def __init__(self, text: str) -> None:
        self._text = text

    def __reduce__(self) -> tuple[Any, ...]:
        text = self._text
        with contextlib.suppress(Exception):
            settings = json.loads(text)
            if settings["follows"]:
                text = json.dumps({**settings, **capture(None, None, follows=True)})
        return _take_ticket, (text,)


def _take_ticket(text: str) -> Ticket:
    with contextlib.suppress(Exception):
        join(json.loads(text))
    return Ticket(text)


os.register_at_fork(after_in_child=_forked)
