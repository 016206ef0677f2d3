"""``python -m memrt replay``: replay the allocations of an event trace through any allocator."""

from __future__ import annotations

import argparse
import ctypes.util
import json
import os
import subprocess
import sys
import tempfile
from importlib import resources
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import memrt
from memrt._support.units import human_bytes, parse_bytes, plural
from memrt._trace.events import ADOPTED, ALLOC, FREE, RESIZE
from memrt._trace.reader import Trace
from memrt.commands.convert import opened
from memrt.commands.output.errors import CommandError
from memrt.commands.output.progress import with_progress
from memrt.commands.output.table import text_table
from memrt.commands.output.target import new_file
from memrt.commands.workers.available import available_memory
from memrt.commands.workers.worker import run_worker

HELP = "Replay the allocations of a trace with several allocators, and compare time and memory."

EXAMPLES = """\
allocators:
  memrt     the default policy of memrt
  malloc    the C library
  numpy     NumPy's own allocator, with the alignment of malloc
  mimalloc, jemalloc, tcmalloc, or the path of a shared object that exports malloc

Each allocator runs in a process of its own, with one thread, in the order of the trace. Resident
memory is the memory added by the replay. Adopted memory is left out.

A trace does not record the pages that a program wrote to. A replay therefore writes to each page of
a block, up to a limit for the written memory of live blocks: half of the available memory. Memory
beyond the limit is allocated but not written to, and the output states the amount. --write-limit
sets another limit, for example for a program with sparse arrays.

exit status: 0 if all allocators were replayed, 1 if an allocator crashed, 2 if no replay started

examples:
  python -m memrt replay run.memtrace
  python -m memrt replay run.memtrace --allocator malloc --allocator ./libmine.so --json
  python -m memrt replay run.memtrace --write-limit 100M
  python -m memrt replay run.memtrace --emit-c run.c && cc -O2 run.c && ./a.out
"""

EVENT = np.dtype(
    [("size", "u8"), ("slot", "u4"), ("type", "u1"), ("align_log2", "u1"), ("reserved", "u2")]
)
_TYPES = {ALLOC: 1, RESIZE: 2, FREE: 3}
_RESIZABLE = 3
_DEFAULT = ("memrt", "malloc", "numpy")
_PRELOADED = {
    "mimalloc": ("mimalloc", "Debian's libmimalloc2.0"),
    "jemalloc": ("jemalloc", "Debian's libjemalloc2"),
    "tcmalloc": ("tcmalloc_minimal", "Debian's libtcmalloc-minimal4"),
}
_PER_LINE = 8
_NO_LIMIT = 2**64 - 1


class Replay(NamedTuple):
    """The result of one allocator for a trace."""

    allocator: str
    seconds: float
    peak: int
    peak_resident: int
    resident: int
    refused: int
    unwritten: int
    """Maximum of live bytes that were not written to because of the limit."""
    error: str | None = None


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("trace", metavar="FILE", help="file that `python -m memrt trace` wrote")
    parser.add_argument("--allocator", action="append", metavar="NAME",
                        help="allocator to compare; may be repeated "
                        "(default: memrt, malloc, numpy)")  # fmt: skip
    parser.add_argument("--write-limit", metavar="SIZE",
                        help="most live memory to write to, like 512M; 0 writes to no memory "
                        "(default: half of the available memory)")  # fmt: skip
    parser.add_argument("--emit-c", metavar="OUT",
                        help="write a C program that repeats the trace with malloc")  # fmt: skip
    parser.add_argument("--force", action="store_true", help="replace an existing file")
    parser.add_argument("--json", action="store_true", help="print JSON")


def execute(arguments: argparse.Namespace) -> None:
    limit = _write_limit(arguments.write_limit)
    events = events_of(opened(arguments.trace))
    if arguments.emit_c is not None:
        with new_file(arguments.emit_c, arguments.force, arguments.trace) as file:
            emit_c(events, os.path.basename(arguments.trace), file, limit)
        return
    names = arguments.allocator or list(_DEFAULT)
    if limit is None:
        limit = default_write_limit()
    preloaded = {name: _library_of(name) for name in names}
    tried = with_progress(names, len(names), "replaying")
    replays = [replay(events, name, preloaded[name], limit) for name in tried]
    if arguments.json:
        print(json.dumps([each._asdict() for each in replays], indent=2))
    else:
        print(_as_text(events, replays, limit))
    if any(each.error is not None for each in replays):
        sys.stdout.flush()
        sys.exit(1)


def _write_limit(text: str | None) -> int | None:
    if text is None:
        return None
    try:
        return min(parse_bytes(text), _NO_LIMIT)
    except ValueError as error:
        raise CommandError(f"--write-limit: {error}") from None


def default_write_limit() -> int:
    """Return half of the available memory. The other half remains for other processes."""
    available = available_memory()
    return _NO_LIMIT if available is None else available // 2


def events_of(trace: Trace) -> NDArray[Any]:
    """Return the events to replay, in order of time.

    Adopted and resizable blocks are left out.
    """
    rows = trace.events[np.isin(trace.events["type"], list(_TYPES))]
    rows = rows[(rows["kind"] != ADOPTED) & (rows["kind"] != _RESIZABLE)]
    rows = rows[np.lexsort((rows["type"], rows["time"]))]
    _, slots = np.unique(rows["block"], return_inverse=True)
    events = np.zeros(len(rows), EVENT)
    events["size"], events["slot"] = rows["nbytes"], slots.reshape(-1)
    events["align_log2"] = np.minimum(rows["align_log2"], 30)
    for known, here in _TYPES.items():
        events["type"][rows["type"] == known] = here
    return events


def _library_of(name: str) -> str | None:
    """Return the path of the shared object whose malloc is tested, or None for no preload.

    Raises
    ------
    CommandError
        For an unknown or missing allocator.
    """
    if name in _DEFAULT:
        return None
    if name in _PRELOADED:
        library, package = _PRELOADED[name]
        found = ctypes.util.find_library(library)
        if found is None:
            raise CommandError(
                f"{name} is not installed: install {package}, or give the path of the library"
            )
        return found
    if not os.path.isfile(name):
        known = ", ".join([*_DEFAULT, *_PRELOADED])
        raise CommandError(f"allocator must be a path or one of {known}, got {name!r}")
    return os.path.abspath(name)


def replay(
    events: NDArray[Any], name: str, preloaded: str | None, limit: int = _NO_LIMIT
) -> Replay:
    """Replay events through an allocator in a new process.

    Parameters
    ----------
    limit : int
        Maximum of live bytes that are written to.
    """
    with tempfile.NamedTemporaryFile(prefix="memrt-replay-") as file:
        file.write(events.tobytes())
        file.flush()
        result = _in_a_process(file.name, events, name, preloaded, limit)
    if result.returncode != 0 or not result.stdout:
        said = result.stderr.strip().splitlines() or ["no error output"]
        return Replay(name, 0.0, 0, 0, 0, 0, 0, f"exit status {result.returncode}: {said[-1]}")
    done = json.loads(result.stdout)
    return Replay(
        name,
        done["nanoseconds"] / 1e9,
        done["peak"],
        max(done["peak_resident"], 0),
        max(done["resident"], 0),
        done["refused"],
        done["unwritten"],
    )


def _in_a_process(
    path: str, events: NDArray[Any], name: str, preloaded: str | None, limit: int
) -> subprocess.CompletedProcess[str]:
    folder = Path(memrt.__file__).parent
    job = {
        "events": path,
        "count": len(events),
        "limit": limit,
        "slots": int(events["slot"].max()) + 1 if len(events) else 1,
        "library": str(folder / "libexec" / "libreplay.so"),
        "table": name if name in _DEFAULT else "malloc",
        "path": [str(folder.parent), *(entry for entry in sys.path if entry)],
    }
    environment = dict(os.environ)
    if preloaded is not None:
        environment["LD_PRELOAD"] = preloaded
    worker = str(Path(__file__).with_name("workers") / "replay_worker.py")
    return run_worker([sys.executable, "-I", "-S", worker], send=json.dumps(job), env=environment)


def _as_text(events: NDArray[Any], replays: list[Replay], limit: int) -> str:
    header = ("allocator", "time", "per event", "peak requested", "peak resident", "end resident",
              "refused", "")  # fmt: skip
    rows = [header]
    for each in replays:
        if each.error is not None:
            rows.append((each.allocator, "", "", "", "", "", "", each.error))
            continue
        per_event = each.seconds / max(len(events), 1) * 1e9
        rows.append(
            (
                each.allocator,
                f"{each.seconds:.3f} s",
                f"{per_event:,.0f} ns",
                human_bytes(each.peak),
                human_bytes(each.peak_resident),
                human_bytes(each.resident),
                f"{each.refused:,}",
                "",
            )
        )
    lines = [f"{plural(len(events), 'event')} replayed", text_table(rows, right=range(1, 7))]
    unwritten = max(each.unwritten for each in replays)
    if unwritten:
        lines.append(
            f"up to {human_bytes(unwritten)} of live memory were not written to: the limit is "
            f"{human_bytes(limit)}, see --write-limit"
        )
    return "\n".join(lines)


def emit_c(events: NDArray[Any], source: str, file: IO[bytes], limit: int | None = None) -> None:
    """Write a self-contained C program that replays the events.

    Parameters
    ----------
    limit : int or None
        Maximum of written bytes in the program. The default None means no limit, because the
        program may run on another machine.
    """
    slots = int(events["slot"].max()) + 1 if len(events) else 1
    core = resources.files("memrt.commands").joinpath("replay.h").read_text(encoding="utf-8")
    name = "".join(letter if letter.isalnum() or letter in "._-" else "_" for letter in source)
    file.write(
        f"/* {plural(len(events), 'event')} of the trace {name}, written by memrt "
        f"{memrt.__version__}.\n   Build with: cc -O2 FILE.c */\n\n{core}\n"
        f"#define EVENTS {len(events)}u\n#define SLOTS {slots}u\n\n"
        "/* Maximum of live bytes to write to; -DWRITE_LIMIT=... sets another limit. */\n"
        "#ifndef WRITE_LIMIT\n#define WRITE_LIMIT "
        f"{'UINT64_MAX' if limit is None else f'{limit}u'}\n#endif\n\n"
        "/* Size, number of the block, 1: alloc, 2: resize, 3: free, log2 of the alignment. */\n"
        "static const replay_event_t events[EVENTS + 1] = {\n".encode()
    )
    starts = range(0, len(events), 4000)
    for start in with_progress(starts, len(starts), "writing"):
        rows = events[start : start + 4000].tolist()
        cells = [f"{{{size}u,{slot},{kind},{log2},0}}," for size, slot, kind, log2, _ in rows]
        for at in range(0, len(cells), _PER_LINE):
            file.write(("    " + "".join(cells[at : at + _PER_LINE]) + "\n").encode())
    file.write(_MAIN.encode())


_MAIN = """\
    {0, 0, 0, 0, 0},
};

int main(void)
{
    replay_outcome_t outcome;
    replay_block_t *blocks = calloc(SLOTS, sizeof(*blocks));
    if (blocks == NULL) {
        fputs("out of memory for the table of blocks\\n", stderr);
        return 1;
    }
    replay_all(events, EVENTS, blocks, WRITE_LIMIT, &replay_libc, &outcome);
    printf("events %lu\\nseconds %.6f\\npeak %llu\\nlive %llu\\nrefused %llu\\n"
           "unwritten %llu\\n",
           (unsigned long)EVENTS, (double)outcome.nanoseconds / 1e9,
           (unsigned long long)outcome.peak, (unsigned long long)outcome.live,
           (unsigned long long)outcome.refused, (unsigned long long)outcome.unwritten);
    for (size_t i = 0; i < SLOTS; i++) {
        free(blocks[i].address);
    }
    free(blocks);
    return outcome.refused == 0 ? 0 : 3;
}
"""
