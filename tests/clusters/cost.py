"""Measure the cost of memrt's account for tasks of one millisecond, and print JSON.

    cost.py ROUNDS TASKS

Rounds with and without the plugin alternate on one worker, and the figures are processor time of
the worker, so that other programs on the machine have little effect. A task makes an array and
computes until a millisecond of processor time has passed.
"""

from __future__ import annotations

import json
import logging
import random
import sys
import time
from time import perf_counter, thread_time

import memrt.dask
import numpy as np
from distributed import Client, LocalCluster, wait

TASK = 1e-3  # seconds
WARM = 50  # tasks before each round


def work(number: int) -> int:
    end = thread_time() + TASK
    array = np.ones(1000)
    while thread_time() < end:
        array *= 1.0
    return number


def seconds_per_task(client: Client, tasks: int, name: str) -> float:
    """Return the processor time of the worker for a graph, divided by the number of tasks."""
    wait(client.map(work, range(WARM), key=f"{name}-warm"))
    (before,) = client.run(time.process_time).values()
    wait(client.map(work, range(tasks), key=name))
    (after,) = client.run(time.process_time).values()
    return (after - before) / tasks


def own_seconds(calls: int = 3000) -> float:
    """Return the time that the account adds to one task, without distributed: the least of 9."""
    from memrt._dask import tasks
    from memrt._policy.live_policies import default_policy

    message = {"op": "task-finished", "nbytes": 0}
    policy, found = default_policy(), []
    for _ in range(9):
        begin = perf_counter()
        for _ in range(calls):
            tasks.run_task("cost", policy, lambda: message)
        found.append((perf_counter() - begin) / calls)
    return min(found)


def main() -> None:
    rounds, tasks = map(int, sys.argv[1:])
    logging.disable(logging.CRITICAL)
    took: dict[str, list[float]] = {"stock": [], "memrt": []}
    with LocalCluster(
        n_workers=1, threads_per_worker=1, dashboard_address=None
    ) as cluster, Client(cluster) as client:  # fmt: skip
        for number in range(rounds):
            for subject in random.sample(list(took), 2):
                if subject == "memrt":
                    memrt.dask.install(client, limit=None)
                took[subject].append(seconds_per_task(client, tasks, f"{subject}-{number}"))
                if subject == "memrt":
                    client.unregister_worker_plugin("memrt")
    print(json.dumps({**took, "own": own_seconds()}))


if __name__ == "__main__":
    main()
