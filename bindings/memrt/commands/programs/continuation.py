"""Write the outputs of ``memrt run --children`` after ``os.exec*`` replaced the main program."""

from __future__ import annotations

import atexit
import contextlib
import os
from collections.abc import Sequence
from typing import Any

from memrt._profile.family import collect_folder


def is_run(words: Sequence[str]) -> bool:
    """Return whether a command line starts memrt itself."""
    options = [word for word in words[1:] if word != "-P"]
    return options[:2] == ["-m", "memrt"] or os.path.basename("".join(options[:1])) == "memrt"


def write_at_exit(options: dict[str, Any]) -> None:
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
