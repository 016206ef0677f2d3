"""Measure memrt on a Dask cluster: an image stack above the limits of two workers, and the cost.

    ./dev bench dask [--gigabytes N] [--runs N] [--quick] [--report] [--python PYTHON]

Writes docs/benchmarks/dask.json, and the section of these figures in the page on clusters. --quick
measures a small stack and prints the section. --report writes the section again. The command fails
if a goal is missed: every run with memrt survives, and a task of 1 ms takes at most 2 % longer.
"""

from __future__ import annotations

import argparse
import datetime
import json
import platform
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "bench"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "suites"))
import environment
import machine
import section
from environment import ROOT

HERE = Path(__file__).resolve().parent
FIGURES = ROOT / "docs" / "benchmarks" / "dask.json"
PAGE = ROOT / "docs" / "guide" / "services" / "clusters.md"
FRAME = 1024  # pixels of a side; a frame of float32 takes 4 MiB
LIMIT = "1 GiB"
NAIVE, FIXED = 96, 8  # frames in a chunk
LIMIT_OF_WORKLOAD, LIMIT_OF_COST = 3600, 1800  # seconds


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="./dev bench dask",
        description=__doc__,
        formatter_class=argparse.RawTextHelpFormatter,
    )
    parser.add_argument("--gigabytes", type=float, default=12, help="size of the stack in GiB")
    parser.add_argument("--runs", type=int, default=20, help="runs with memrt and large chunks")
    parser.add_argument("--quick", action="store_true", help="0.75 GiB, 2 runs, few rounds")
    parser.add_argument("--report", action="store_true", help="write the section again")
    parser.add_argument("--python", help="Python with Dask and memrt (default: build/clients-venv)")
    parsed = parser.parse_args()
    if parsed.quick:
        parsed.gigabytes, parsed.runs = 0.75, 2
    if parsed.gigabytes < 0.75 or parsed.runs < 1:
        parser.error("--gigabytes must be 0.75 or more, and --runs 1 or more")
    return parsed


def printed(python: str, seconds: int, script: str, *words: str) -> dict[str, Any]:
    """Run a script of this folder. Return the JSON object that the script prints last."""
    done = subprocess.run(
        [python, "-W", "ignore", HERE / script, *words],
        capture_output=True, text=True, timeout=seconds, check=False,
    )  # fmt: skip
    if done.returncode != 0:
        sys.exit(
            f"bench dask: {script} ended with status {done.returncode}:\n{done.stderr[-2000:]}"
        )
    return json.loads(done.stdout.splitlines()[-1])


def cases(frames: int, runs: int) -> Sequence[dict[str, Any]]:
    """Return the jobs: large chunks without and with memrt, small chunks without and with."""
    own = {"frames": frames, "side": FRAME, "limit": LIMIT}
    return (
        {**own, "memrt": False, "chunk": NAIVE, "runs": 1},
        {**own, "memrt": True, "chunk": NAIVE, "runs": runs},
        {**own, "memrt": False, "chunk": FIXED, "runs": 1},
        {**own, "memrt": True, "chunk": FIXED, "runs": 1},
    )


def measure(chosen: argparse.Namespace, python: str) -> dict[str, Any]:
    frames = int(chosen.gigabytes * 2**30) // (FRAME * FRAME * 4)
    measured = []
    for job in cases(frames, chosen.runs):
        subject = "memrt" if job["memrt"] else "stock"
        print(f"→ {subject}, {job['chunk']} frames in a chunk", flush=True)
        text = json.dumps(job)
        measured.append({**job, **printed(python, LIMIT_OF_WORKLOAD, "workload.py", text)})
    print("→ cost of tasks of 1 ms", flush=True)
    rounds, tasks = ("3", "200") if chosen.quick else ("15", "500")
    cost = printed(python, LIMIT_OF_COST, "cost.py", rounds, tasks)
    versions = environment.versions(Path(python), ("numpy", "dask", "distributed"))
    return {
        "machine": {
            "date": datetime.date.today().isoformat(),
            "commit": machine.commit(),
            "processor": machine.processor(),
            "memory": machine.memory(),
            "system": f"Linux {platform.release()}",
            **versions,
        },
        "cases": measured,
        "cost": cost,
    }


def main() -> int:
    chosen = arguments()
    if chosen.report:
        found = json.loads(FIGURES.read_text(encoding="utf-8"))
    else:
        try:
            python = chosen.python or str(environment.clients())
        except environment.StepError as error:
            print(f"bench dask: {error}", file=sys.stderr)
            return 1
        found = measure(chosen, python)
    if chosen.quick:
        print(section.text(found))
    else:
        FIGURES.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
        section.write(PAGE, found)
    missed = section.missed(found)
    print(*missed, sep="\n", end="\n" if missed else "")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
