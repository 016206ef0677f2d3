"""Make and drop memory for a while, from C and from NumPy, and report whether memory stays flat.

Two programs run side by side: blocks.c calls the table, arrays.py goes through NumPy's handler and
memrt.empty. Both choose the sizes and lifetimes of blocks at random, in threads that start and end.
Each program prints a line per round, and the samples go to build/churn.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import memrt
from flatness import MIB, Sample, faults

HERE = Path(__file__).resolve().parent
OUT = HERE.parents[1] / "build" / "churn"
ROUNDS = 40
LEAKS = ("none", "blocks", "pages")

Show = Callable[[str, Sample], None]


def compiled(folder: Path) -> Path:
    """Compile blocks.c against the installed libmemrt and return the path of the program."""
    folder.mkdir(parents=True, exist_ok=True)
    library, program = Path(memrt.get_library()), folder / "blocks"
    command = ["cc", "-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-pthread"]
    where = [f"-I{memrt.get_include()}", f"-Wl,-rpath,{library.parent}"]
    subprocess.run([*command, *where, HERE / "blocks.c", library, "-o", program], check=True)
    return program


def programs(folder: Path) -> dict[str, list[str]]:
    """Return the command line of each program, by name."""
    return {
        "blocks": [str(compiled(folder))],
        "arrays": [sys.executable, str(HERE / "arrays.py")],
    }


def environment() -> dict[str, str]:
    """Return the environment without settings that change the memory of a process."""
    return {k: v for k, v in os.environ.items() if not k.startswith(("MEMRT_", "MALLOC_", "LD_"))}


def samples(command: list[str], seconds: float, rounds: int, leak: str) -> Iterator[Sample]:
    """Run a program and yield each sample as soon as the program prints the sample.

    Raises CalledProcessError if the program fails.
    """
    whole = [*command, str(seconds), str(rounds), leak]
    with subprocess.Popen(whole, stdout=subprocess.PIPE, text=True, env=environment()) as process:
        for line in process.stdout:
            yield Sample(**json.loads(line))
    if process.returncode != 0:
        raise subprocess.CalledProcessError(process.returncode, whole)


def show(name: str, sample: Sample) -> None:
    figures = {field: getattr(sample, field) / MIB for field in ("peak", "resident", "cached")}
    sizes = ", ".join(f"{field} {size:.1f} MiB" for field, size in figures.items())
    print(f"{name} {sample.seconds:5.0f} s: {sizes}, {sample.made:,} allocated", flush=True)


def watch(
    name: str, command: list[str], seconds: float, rounds: int, leak: str, shown: Show
) -> list[Sample]:
    """Run a program, show its samples, and return all samples."""
    found = []
    for sample in samples(command, seconds, rounds, leak):
        shown(name, sample)
        found.append(sample)
    return found


def write(found: list[Sample], path: Path) -> None:
    lines = [json.dumps(vars(sample)) for sample in found]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def arguments() -> argparse.Namespace:
    summary, about = __doc__.split("\n\n", 1)
    parser = argparse.ArgumentParser(prog="./dev stress churn", description=summary, epilog=about)
    parser.add_argument(
        "minutes", nargs="?", type=float, default=60, help="minutes to run, default 60"
    )
    parser.add_argument("--leak", choices=LEAKS, default="none", help="leak memory on purpose")
    parsed = parser.parse_args()
    if not parsed.minutes > 0:
        parser.error(f"minutes must be more than 0, got {parsed.minutes}")
    return parsed


def main() -> int:
    chosen = arguments()
    seconds, failed = chosen.minutes * 60, False
    with ThreadPoolExecutor() as pool:
        running = {
            name: pool.submit(watch, name, command, seconds, ROUNDS, chosen.leak, show)
            for name, command in programs(OUT).items()
        }
    for name, run in running.items():
        found = run.result()
        write(found, OUT / f"{name}.jsonl")
        wrong = faults(found)
        failed |= wrong != []
        print(f"{name}: {'; '.join(wrong) or 'flat'}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
