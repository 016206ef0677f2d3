"""``python -m memrt replay``: the allocations of a trace again, through any allocator."""

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
from memrt._trace import ADOPTED, BIRTH, DEATH, RESIZE, Trace
from memrt._units import human_bytes, plural
from memrt.commands.convert import new_file, opened
from memrt.commands.errors import CommandError
from memrt.commands.progress import with_progress
from memrt.commands.table import text_table

HELP = "Replay the allocations of a trace through allocators, and compare times and memory."

EXAMPLES = """\
allocators:
  memrt     memrt's default policy
  malloc    the C library's
  numpy     NumPy's own, which aligns to what malloc does
  mimalloc, jemalloc, tcmalloc, or the path of a shared object that has a malloc

Each is tried in a process of its own, by one thread, in the order of the trace; pages are written
to as a program that uses its memory does. Resident memory is what the replay added. Memory of
others that the program adopted is left out.

exit status: 0 when all were tried, 1 when one crashed, 2 when nothing could be tried

examples:
  python -m memrt replay run.memtrace
  python -m memrt replay run.memtrace --allocator malloc --allocator ./libmine.so --json
  python -m memrt replay run.memtrace --emit-c run.c && cc -O2 run.c && ./a.out
"""

EVENT = np.dtype(
    [("size", "u8"), ("slot", "u4"), ("type", "u1"), ("align_log2", "u1"), ("reserved", "u2")]
)
_TYPES = {BIRTH: 1, RESIZE: 2, DEATH: 3}
_RESIZABLE = 3
_DEFAULT = ("memrt", "malloc", "numpy")
_PRELOADED = {
    "mimalloc": ("mimalloc", "Debian's libmimalloc2.0"),
    "jemalloc": ("jemalloc", "Debian's libjemalloc2"),
    "tcmalloc": ("tcmalloc_minimal", "Debian's libtcmalloc-minimal4"),
}
_PER_LINE = 8


class Replay(NamedTuple):
    """What one allocator did with a trace."""

    allocator: str
    seconds: float
    peak: int
    peak_resident: int
    resident: int
    refused: int
    error: str | None = None


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("trace", metavar="FILE", help="what `python -m memrt trace` recorded")
    parser.add_argument("--allocator", action="append", metavar="NAME",
                        help="may be given again (default: memrt, malloc, numpy)")  # fmt: skip
    parser.add_argument("--emit-c", metavar="OUT",
                        help="write a C program that does the same by malloc")  # fmt: skip
    parser.add_argument("--force", action="store_true", help="replace a file that is there")
    parser.add_argument("--json", action="store_true", help="print JSON")


def execute(arguments: argparse.Namespace) -> None:
    events = events_of(opened(arguments.trace))
    if arguments.emit_c is not None:
        with new_file(arguments.emit_c, arguments.force) as file:
            emit_c(events, os.path.basename(arguments.trace), file)
        return
    names = arguments.allocator or list(_DEFAULT)
    preloaded = {name: _library_of(name) for name in names}
    tried = with_progress(names, len(names), "replaying")
    replays = [replay(events, name, preloaded[name]) for name in tried]
    if arguments.json:
        print(json.dumps([each._asdict() for each in replays], indent=2))
    else:
        print(_as_text(events, replays))
    if any(each.error is not None for each in replays):
        sys.stdout.flush()
        sys.exit(1)


def events_of(trace: Trace) -> NDArray[Any]:
    """The events that an allocator is to replay, in order."""
    rows = trace.events[np.isin(trace.events["type"], list(_TYPES))]
    rows = rows[(rows["kind"] != ADOPTED) & (rows["kind"] != _RESIZABLE)]
    rows = rows[np.lexsort((rows["type"], rows["time"]))]
    _, slots = np.unique(rows["block"], return_inverse=True)
    events = np.zeros(len(rows), EVENT)
    events["size"], events["slot"] = rows["size"], slots.reshape(-1)
    events["align_log2"] = np.minimum(rows["align_log2"], 30)
    for known, here in _TYPES.items():
        events["type"][rows["type"] == known] = here
    return events


def _library_of(name: str) -> str | None:
    """The shared object that has the malloc to try; None: the one of the process."""
    if name in _DEFAULT:
        return None
    if name in _PRELOADED:
        library, package = _PRELOADED[name]
        found = ctypes.util.find_library(library)
        if found is None:
            raise CommandError(f"{name} is not installed: install {package}, or give its path")
        return found
    if not os.path.isfile(name):
        known = ", ".join([*_DEFAULT, *_PRELOADED])
        raise CommandError(f"there is no allocator {name!r}: give a path, or one of {known}")
    return os.path.abspath(name)


def replay(events: NDArray[Any], name: str, preloaded: str | None) -> Replay:
    """Replay events by an allocator, in a process of its own."""
    with tempfile.NamedTemporaryFile(prefix="memrt-replay-") as file:
        file.write(events.tobytes())
        file.flush()
        result = _in_a_process(file.name, events, name, preloaded)
    if result.returncode != 0 or not result.stdout:
        said = result.stderr.strip().splitlines() or ["it said nothing"]
        return Replay(name, 0.0, 0, 0, 0, 0, f"exit status {result.returncode}: {said[-1]}")
    done = json.loads(result.stdout)
    return Replay(
        name,
        done["nanoseconds"] / 1e9,
        done["peak"],
        max(done["peak_resident"], 0),
        max(done["resident"], 0),
        done["refused"],
    )


def _in_a_process(
    path: str, events: NDArray[Any], name: str, preloaded: str | None
) -> subprocess.CompletedProcess[str]:
    folder = Path(memrt.__file__).parent
    job = {
        "events": path,
        "count": len(events),
        "slots": int(events["slot"].max()) + 1 if len(events) else 1,
        "library": str(folder / "libexec" / "libreplay.so"),
        "table": name if name in _DEFAULT else "malloc",
        "path": [str(folder.parent), *(entry for entry in sys.path if entry)],
    }
    environment = dict(os.environ)
    if preloaded is not None:
        environment["LD_PRELOAD"] = preloaded
    worker = str(Path(__file__).with_name("replay_worker.py"))
    return subprocess.run(
        [sys.executable, "-I", "-S", worker],
        input=json.dumps(job),
        capture_output=True,
        text=True,
        env=environment,
    )


def _as_text(events: NDArray[Any], replays: list[Replay]) -> str:
    header = ("allocator", "time", "per event", "peak asked for", "peak resident", "at the end",
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
    return f"{plural(len(events), 'event')} replayed\n" + text_table(rows, right=range(1, 7))


def emit_c(events: NDArray[Any], source: str, file: IO[bytes]) -> None:
    """Write a C program that does what the events say, and needs nothing else."""
    slots = int(events["slot"].max()) + 1 if len(events) else 1
    core = resources.files("memrt.commands").joinpath("replay.h").read_text(encoding="utf-8")
    name = "".join(letter if letter.isalnum() or letter in "._-" else "_" for letter in source)
    file.write(
        f"/* {plural(len(events), 'allocation')} of the trace {name}, written by memrt "
        f"{memrt.__version__}.\n   Build it by: cc -O2 FILE.c */\n\n{core}\n"
        f"#define EVENTS {len(events)}u\n#define SLOTS {slots}u\n\n"
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
        fputs("no memory for the table of blocks\\n", stderr);
        return 1;
    }
    replay_all(events, EVENTS, blocks, &replay_libc, &outcome);
    printf("events %lu\\nseconds %.6f\\npeak %llu\\nlive %llu\\nrefused %llu\\n",
           (unsigned long)EVENTS, (double)outcome.nanoseconds / 1e9,
           (unsigned long long)outcome.peak, (unsigned long long)outcome.live,
           (unsigned long long)outcome.refused);
    for (size_t i = 0; i < SLOTS; i++) {
        free(blocks[i].address);
    }
    free(blocks);
    return outcome.refused == 0 ? 0 : 3;
}
"""
