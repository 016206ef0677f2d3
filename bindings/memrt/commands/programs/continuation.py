"""Record the Python processes of ``memrt run --children``, also after ``os.exec*``."""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import sys
from collections.abc import Sequence
from typing import Any

from memrt._profile.family import collect_folder
from memrt._profile.member import VARIABLE, record_this


def record_new_interpreter() -> None:
    """Record the new interpreter with the options in VARIABLE. Called by sitecustomize.

    After ``os.exec*`` in the main process, the new interpreter also writes the outputs at its end.
    If the program restarts ``memrt run`` itself, memrt run records and writes.
    """
    options: dict[str, Any] = json.loads(os.environ[VARIABLE])
    if options.get("main") == os.getpid():
        if _is_run(sys.orig_argv):
            return
        _write_at_exit(options)
    record_this(options)


def _is_run(words: Sequence[str]) -> bool:
    """Return whether a command line starts memrt itself."""
    options = [word for word in words[1:] if word != "-P"]
    return options[:2] == ["-m", "memrt"] or os.path.basename("".join(options[:1])) == "memrt"


def _write_at_exit(options: dict[str, Any]) -> None:
    """Write the outputs at the end of this process, after the recording of the process ended."""
    from memrt.commands.output.reports import Outputs

    outputs = Outputs(**options["outputs"], force=True)
    owner = os.getpid()

    def finish() -> None:
        if os.getpid() == owner:
            with contextlib.suppress(Exception, KeyboardInterrupt):
                documents, note = collect_folder(options["folder"])
                if note is not None and documents:
                    documents[0]["notes"].append(note)
                if documents:
                    outputs.write(documents)

    atexit.register(finish)
