"""Record the program of ``python -m memrt run``: findings and reports at the program's end."""

from __future__ import annotations

import atexit
import contextlib
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from memrt._profile.family import Family, folder_before_exec
from memrt._profile.member import VARIABLE
from memrt._profile.recorder import ENDED, Recorder
from memrt._profile.recording import Document
from memrt._support.executing import before_exec
from memrt.commands.output.errors import is_terminal, say
from memrt.commands.programs.supervisor import supervise

if TYPE_CHECKING:
    from memrt.commands.output.reports import Outputs  # pages and pictures need more memory


class Recording:
    """Recording of the program in the current process, written after threads and exit functions."""

    def __init__(
        self, recorder: Recorder, family: Family | None, outputs: Outputs | None, quiet: bool
    ) -> None:
        self._recorder, self._family = recorder, family
        self._outputs, self._quiet = outputs, quiet
        self._ended = ENDED
        self._begun = False
        if family is not None:
            recorder.save_by(self._keep)
        self._own: Document | None = None
        self._owner = os.getpid()
        atexit.register(self._finish)

    def start(self) -> None:
        """Start recording.

        Recording stops in an atexit function. Functions registered earlier run after the stop.
        """
        self._begun = True
        atexit.register(self._stop)
        if self._family is not None:
            continues = folder_before_exec() is not None
            self._family.follow()
            with contextlib.suppress(OSError):
                self._keep()
            if not continues:
                supervise(os.environ[VARIABLE], self._quiet)
            before_exec(self._write_before_exec)
        self._recorder.start()

    @contextlib.contextmanager
    def program(self) -> Iterator[None]:
        """Provide a context for the program that notes how the program ends."""
        try:
            yield
        except SystemExit as end:
            if end.code not in (None, 0):
                self._ended = f"ended with status {end.code if isinstance(end.code, int) else 1}"
            raise
        except BaseException as error:
            self._ended = f"ended by {type(error).__name__}"
            raise

    def _stop(self) -> None:
        if os.getpid() == self._owner:
            with contextlib.suppress(KeyboardInterrupt):
                self._recorder.stop()

    def _keep(self) -> None:
        """Save the recording so far, for the supervising process."""
        if self._family is not None:
            self._family.save(self._recorder.so_far("killed, or ended by os._exit"))

    def _write_before_exec(self) -> None:
        """Write the outputs so far. A Python program after ``os.exec*`` adds its own recording."""
        if self._family is None or self._outputs is None:
            return
        if os.getpid() == self._owner:
            self._outputs.write(self._family.keep(self._recorder.before_exec()))

    def _documents(self) -> list[Document]:
        """Return the document of the current process, then the documents of child processes."""
        own = self._own_document()
        if self._family is None:
            return [own]
        children, note = self._family.collect()
        own["notes"] += [] if note is None else [note]
        return [own, *children]

    def findings(self) -> list[dict[str, Any]]:
        """Return the findings after the end of the program; none after a failure."""
        with contextlib.suppress(Exception, KeyboardInterrupt):
            findings: list[dict[str, Any]] = self._own_document()["findings"]
            return findings
        return []

    def _own_document(self) -> Document:
        """Return the document of the current process. The first call examines the live buffers."""
        if self._own is None:
            if not self._quiet and is_terminal():
                say("memrt: examining live buffers")
            self._own = self._recorder.finish(self._ended)
        return self._own

    def _finish(self) -> None:
        if not self._begun or os.getpid() != self._owner:  # a forked child is not the program
            return
        if self._outputs is None:
            return
        try:
            failures = self._outputs.write(self._documents())
        except KeyboardInterrupt:
            failures = ["no report was written: interrupted by Ctrl-C"]
        except Exception as error:
            failures = [f"no report was written: {type(error).__name__}: {error}"]
        said = [f"memrt: {failure}" for failure in failures]
        if not said and not self._quiet:
            said = self._outputs.said()
        say(*said)
