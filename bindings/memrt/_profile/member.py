"""Record one child process of a recorded program: a forked child, or a new interpreter."""

from __future__ import annotations

import atexit
import contextlib
import os
import secrets
import sys
from typing import Any

from memrt._profile.recorder import ENDED, Recorder
from memrt._profile.recording import Document, dumps
from memrt._stats.peak import set_precision_of_peaks
from memrt._support.executing import before_exec
from memrt._tracking.user_code import show_all_frames

VARIABLE = "_MEMRT_FAMILY"
"""Environment variable with the recording options for a new interpreter, as JSON."""


class Member:
    """Recorder of the current process, or of its forked children, with output in a folder.

    The recording so far is rewritten periodically. A recording therefore exists even where the
    process is killed, as pool workers are, or leaves by ``os._exit``. Never prints.
    """

    def __init__(self, folder: str, settings: dict[str, str], tracked: bool) -> None:
        self._folder, self._settings, self._tracked = folder, settings, tracked
        self._owner = 0
        self._done = True
        before_exec(self._replace)

    def follow_forks(self) -> None:
        """Record children forked from now on."""
        import multiprocessing.util  # multiprocessing children do not run atexit functions

        os.register_at_fork(after_in_child=self._forked)
        multiprocessing.util.register_after_fork(self, Member._finish_with_multiprocessing)

    def record(self) -> None:
        """Record the current process from now on until its end."""
        self._owner, self._done = os.getpid(), False
        self._path = os.path.join(self._folder, f"{self._owner}-{secrets.token_hex(4)}")
        with contextlib.suppress(OSError), open(self._path, "xb"):
            pass  # the empty file shows the parent the existence of the process
        self._recorder = Recorder(self._settings, self._tracked, self._keep)
        self._recorder.start()
        atexit.register(self._finish)

    def _forked(self) -> None:
        with contextlib.suppress(Exception):
            self.record()

    def _finish_with_multiprocessing(self) -> None:
        from multiprocessing.util import Finalize

        Finalize(None, self._finish, exitpriority=-1000)

    def _replace(self) -> None:
        if os.getpid() == self._owner and not self._done:
            self._write(self._recorder.before_exec())

    def _keep(self) -> None:
        self._write(self._recorder.so_far("killed, ended by os._exit, or outlived its parent"))

    def _finish(self) -> None:
        if os.getpid() != self._owner or self._done:
            return
        self._done = True
        with contextlib.suppress(Exception, KeyboardInterrupt):
            kind = getattr(sys, "last_type", None)
            ended = ENDED if kind is None else f"ended by {kind.__name__}"
            self._recorder.stop()
            self._write(self._recorder.finish(ended))

    def _write(self, document: Document) -> None:
        write_document(self._path, document)


def write_document(path: str, document: Document) -> None:
    """Write the recording of a process in one step."""
    beside = f"{path}.new"
    with open(beside, "wb") as file:
        file.write(dumps([document]).encode("ascii"))
    os.replace(beside, path)


def record_this(options: dict[str, Any]) -> None:
    """Record the current interpreter, with the options that VARIABLE has as JSON."""
    import memrt

    show_all_frames(options["all_frames"])
    if options["tracked"]:
        memrt.debug.tracking(**options["tracking"]).__enter__()
    if (options["limit"], options["soft_limit"]) != (None, None):
        memrt.limit(options["limit"], soft=options["soft_limit"])
    set_precision_of_peaks(options["exact_peak"])
    memrt.enable(memrt.Policy(options["alignment"], options["name"]))
    member = Member(options["folder"], options["settings"], options["tracked"])
    member.follow_forks()
    member.record()
