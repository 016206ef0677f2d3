"""Run Dask clusters of several hosts through failures, and measure growth: `./dev suites clusters`.

    ./dev suites clusters [--kills N] [--loopback] [--python PYTHON]

Hosts are network namespaces; without the rights, hosts are loopback addresses. Workers are killed
at random, the scheduler restarts, and the client has another version. Further clusters of 50, 100
and 200 workers measure the cost of the account on the scheduler.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "suites"))
import environment
from hosts import hosts

HERE = Path(__file__).resolve().parent
HOSTS, TIMEOUT = 3, 900
WORKERS = (50, 100, 200)


def scenario(python: str, kills: int, seed: int = 7, loopback: bool = False) -> dict[str, Any]:
    """Return the reports of memrt on a cluster of HOSTS hosts, with the kind of the hosts."""
    with hosts(HOSTS, loopback) as made:
        job = {
            "kills": kills,
            "seed": seed,
            "addresses": [made.address(host) for host in range(HOSTS)],
            "on": [made.on(host) for host in range(HOSTS)],
        }
        command = made.on(0, python, "-W", "ignore", str(HERE / "scenario.py"), json.dumps(job))
        found = _printed(command)
    return {"kind": made.kind, "notes": made.notes, **found}


def growth(python: str, workers: int) -> dict[str, Any]:
    """Return bytes and seconds of the scheduler for one reading of all workers."""
    return _printed([python, "-W", "ignore", str(HERE / "growth.py"), str(workers)])


def _printed(command: list[str]) -> dict[str, Any]:
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{command[-2]} ended with {done.returncode}:\n{done.stderr[-3000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def problems(found: dict[str, Any]) -> list[str]:
    """Return a sentence for each wrong fact of a scenario."""
    expected = {
        "right": [True] * len(found["right"]),
        "managed": [True] * (HOSTS - 1),
        "after mismatch": [True] * (HOSTS - 1),
        "restarted": [True] * (HOSTS - 1),
        "tasks after restart": {"is_managed": HOSTS - 1},
    }
    said = [
        f"{name} must be {value}, got {found[name]}"
        for name, value in expected.items()
        if found[name] != value
    ]
    if "workers must have memrt 0.0.7 like the client" not in found["mismatch"]:
        said.append(f"a mismatch must be named, got {found['mismatch']!r}")
    if len(found["hosts"]) != HOSTS - 1:
        said.append(f"workers must run on {HOSTS - 1} hosts, got {found['hosts']}")
    return said


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="./dev suites clusters",
        description=__doc__,
        formatter_class=argparse.RawTextHelpFormatter,
    )
    parser.add_argument("--kills", type=int, default=10, help="workers to kill (default 10)")
    parser.add_argument("--loopback", action="store_true", help="use no namespaces")
    parser.add_argument("--python", help="Python with Dask and memrt (default: build/clients-venv)")
    return parser.parse_args()


def main() -> int:
    chosen = arguments()
    try:
        python = chosen.python or str(environment.clients())
        found = scenario(python, chosen.kills, loopback=chosen.loopback)
        for note in (f"hosts are {found['kind']}", *found["notes"]):
            print(f"clusters: {note}", flush=True)
        said = problems(found)
        print(f"clusters: {sum(found['right'])} of {chosen.kills} computations right after a kill")
        for workers in WORKERS:
            row = growth(python, workers)
            print(
                f"clusters: {workers} workers: {row['bytes']:,} bytes and "
                f"{row['cpu'] * 1e3:.1f} ms of the scheduler for a reading",
                flush=True,
            )
    except (environment.StepError, RuntimeError, subprocess.TimeoutExpired) as error:
        print(f"clusters: {error}", file=sys.stderr)
        return 1
    print(*said, sep="\n", end="\n" if said else "")
    return 1 if said else 0


if __name__ == "__main__":
    sys.exit(main())
