"""Write the outputs of ``run --children`` after the main program was killed.

`supervise` starts this file as a process that waits for the end of the main program. The process is
no child of the program, and imports memrt only if recordings are left.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import sys
import time


def supervise(options: str, quiet: bool) -> None:
    """Start the supervising process of this program.

    Failure: without a new process, nothing happens, and a killed program leaves no outputs.

    Parameters
    ----------
    options : str
        Recording options as JSON, with the folder of the recordings and the outputs.
    quiet : bool
        Whether only failures are printed.
    """
    from memrt._support.process_folder import start_time

    pid = os.getpid()
    job = {"pid": pid, "start": start_time(pid), "quiet": quiet, "path": sys.path}
    words = [sys.executable, "-I", "-S", os.path.abspath(__file__), json.dumps(job), options]
    variables = {k: v for k, v in os.environ.items() if "MEMRT_" not in k}
    null = [
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
    ]
    with contextlib.suppress(OSError, ValueError):
        os.waitpid(os.posix_spawn(sys.executable, words, variables, file_actions=null), 0)


def write_outputs(options: dict[str, object], quiet: bool) -> None:
    """Write the outputs of a program that ended without them, and remove the recordings.

    Parameters
    ----------
    options : dict[str, object]
        Recording options, with the folder of the recordings and the outputs.
    quiet : bool
        Whether only failures are printed.
    """
    from memrt._profile.family import collect_folder
    from memrt.commands.output.errors import say
    from memrt.commands.output.reports import Outputs

    documents, note = collect_folder(str(options["folder"]), main=int(str(options["main"])))
    said = ["memrt: no report was written: the program was killed before its first recording"]
    if documents:
        documents[0]["notes"] += [] if note is None else [note]
        outputs = Outputs(**options["outputs"], force=True)  # type: ignore[arg-type]
        failures = outputs.write(documents)
        said = [f"memrt: {failure}" for failure in failures]
        if not said and not quiet:
            said = [f"memrt: the program was {documents[0]['ended']}", *outputs.said()]
    say(*said)


# --- The supervising process, which the tools of coverage do not reach. ---


def _wait(pid: int, start: int) -> None:  # pragma: no cover - another process
    """Wait for the end of a process, identified by its start time."""
    with contextlib.suppress(OSError, AttributeError):  # an old kernel, or too many open files
        descriptor = os.pidfd_open(pid)
        if _runs(pid, start):
            select.select([descriptor], [], [])
        return
    while _runs(pid, start):
        time.sleep(0.1)


def _runs(pid: int, start: int) -> bool:  # pragma: no cover - another process
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            fields = file.read().rpartition(")")[2].split()
    except OSError:
        return False
    return fields[0] not in "ZX" and int(fields[19]) == start


def _main() -> None:  # pragma: no cover - another process
    job, options = (json.loads(word) for word in sys.argv[1:])
    if os.fork() != 0:
        os._exit(0)  # the program waits for this process only
    os.setsid()  # signals of the terminal are for the program
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))
    _wait(job["pid"], job["start"])
    if os.path.isdir(options["folder"]):
        sys.path[:] = job["path"]
        from memrt.commands.programs.supervisor import write_outputs as write

        write(options, job["quiet"])


if __name__ == "__main__":  # pragma: no cover - another process
    _main()
