"""Run tasks that need more memory than a worker has, and print the outcomes as JSON.

    python tests/clients/survival.py [--runs N] [--stock]

Each run starts a cluster with one worker of 300 MiB. One task allocates 600 MB, 20 tasks allocate
800 kB each, and the results of 16 tasks have 320 MB together. Without memrt (--stock), the nanny
ends the worker. A worker survives if the process is the same at the end, only the large task fails,
by a MemoryError with the line of the allocation, and all other results are right.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import time
import traceback

import dask
import memrt.dask
import numpy as np
from distributed import Client, LocalCluster


def fill(count):
    arrays = []
    for _ in range(count):
        arrays.append(np.ones(1_250_000))
        time.sleep(0.01)
    return len(arrays)


LINE = fill.__code__.co_firstlineno + 3  # the allocation


def small(number):
    return float(np.ones(100_000).sum()) + number


def chunk(number):
    return np.full(2_500_000, float(number))


def first(array):
    return float(array[0])


def run(stock: bool) -> dict[str, object]:
    """Run the tasks on a new cluster, and return the outcome."""
    with (
        LocalCluster(n_workers=1, threads_per_worker=2, memory_limit="300 MiB",
                     dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):  # fmt: skip
        if not stock:
            memrt.dask.install(client)
        before = list(client.run(os.getpid).values())
        large, others = client.submit(fill, 60), client.map(small, range(20))
        error, frames = large.exception(), traceback.extract_tb(large.traceback())
        chunks = client.map(chunk, range(16))
        firsts = client.map(first, chunks)
        outcome = {
            "error": type(error).__name__,  # NumPy's class has the name of its base
            "names_line": ("fill", LINE) in [(frame.name, frame.lineno) for frame in frames],
            "others": client.gather(others) == [100_000.0 + number for number in range(20)],
            "spilled": client.gather(firsts) == [float(number) for number in range(16)],
            "same_process": list(client.run(os.getpid).values()) == before,
        }
    return {**outcome, "survived": all(outcome.values())}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=1, metavar="N", help="number of runs")
    parser.add_argument("--stock", action="store_true", help="run without memrt")
    arguments = parser.parse_args()
    logging.disable(logging.CRITICAL)
    dask.config.set({"distributed.scheduler.allowed-failures": 0})
    outcomes = [run(arguments.stock) for _ in range(arguments.runs)]
    survived = sum(bool(outcome["survived"]) for outcome in outcomes)
    print(json.dumps({"runs": arguments.runs, "survived": survived, "outcomes": outcomes}))


if __name__ == "__main__":
    main()
