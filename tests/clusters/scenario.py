"""Run a cluster of several hosts through failures, and print the reports of memrt as JSON.

    scenario.py JOB    JOB is a JSON object: kills, seed, addresses, on

`on` is the command prefix of each host. Host 0 has the scheduler and this program, and each other
host has a nanny with one worker. Workers load memrt by --preload.

No library runs the steps: distributed's LocalCluster has one host.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import memrt.dask
import numpy as np
from distributed import Client

PORT = 8786
WAIT = 120


def load(size: int, number: int) -> np.ndarray:
    return np.full(size, float(number))


def is_managed(number: int) -> bool:
    import memrt

    return memrt.is_managed(np.ones(1000 + number))


class Cluster:
    """Processes of a scheduler and of the nannies, on their hosts."""

    def __init__(self, job: dict[str, Any]) -> None:
        self._job = job
        self.address = f"tcp://{job['addresses'][0]}:{PORT}"
        self._running: list[subprocess.Popen] = []

    def _start(self, host: int, *words: str) -> subprocess.Popen:
        command = [*self._job["on"][host], sys.executable, "-W", "ignore", "-m", *words]
        process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
        )
        self._running.append(process)
        return process

    def start_scheduler(self) -> subprocess.Popen:
        where = ("--host", self._job["addresses"][0], "--port", str(PORT))
        return self._start(0, "distributed.cli.dask_scheduler", *where, "--no-dashboard")

    def start_workers(self) -> None:
        for host, address in enumerate(self._job["addresses"][1:], 1):
            self._start(
                host, "distributed.cli.dask_worker", self.address, "--host", address,
                "--nthreads", "1", "--memory-limit", "1GiB", "--no-dashboard", "--preload",
                "memrt.dask", "--death-timeout", str(WAIT),
            )  # fmt: skip

    def stop(self) -> None:
        """End all processes, with the workers of the nannies."""
        for process in reversed(self._running):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
        for process in self._running:
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        self._running.clear()


@contextlib.contextmanager
def started(job: dict[str, Any]) -> Iterator[tuple[Cluster, Client]]:
    """Provide a cluster with all workers, and its client."""
    cluster = Cluster(job)
    try:
        cluster.start_scheduler()
        cluster.start_workers()
        with Client(cluster.address, timeout=WAIT) as client:
            client.wait_for_workers(len(job["addresses"]) - 1, timeout=WAIT)
            yield cluster, client
    finally:
        cluster.stop()


def tasks_of(client: Client) -> dict[str, int]:
    return {prefix: each.tasks for prefix, each in memrt.dask.stats(client).items()}


def kill_workers(client: Client, job: dict[str, Any]) -> list[bool]:
    """Kill random workers during a computation. Return whether each computation ended right."""
    chosen, right = random.Random(job["seed"]), []
    for number in range(job["kills"]):
        futures = client.map(load, [20_000 + number] * 40, range(40), key=f"load-{number}")
        pids = client.run(os.getpid)
        os.kill(pids[chosen.choice(sorted(pids))], signal.SIGKILL)
        total = client.submit(sum, client.map(np.sum, futures, key=f"total-{number}"))
        right.append(float(total.result(WAIT)) == (20_000 + number) * sum(range(40)))
        client.wait_for_workers(len(pids), timeout=WAIT)
    return right


def managed(client: Client, first: int) -> list[bool]:
    """Return for each worker whether its tasks run on memrt."""
    workers = sorted(client.scheduler_info(n_workers=-1)["workers"])
    return [
        client.submit(is_managed, first + number, workers=[worker]).result(WAIT)
        for number, worker in enumerate(workers)
    ]


def mismatch(client: Client) -> str:
    """Return the message for a client with another version of memrt than the workers."""
    version, memrt.__version__ = memrt.__version__, "0.0.7"
    try:
        memrt.dask.install(client)
    except Exception as error:
        return str(error)
    finally:
        memrt.__version__ = version
    return "no message"


def run(job: dict[str, Any]) -> dict[str, Any]:
    with started(job) as (_, client):
        hosts = {worker.rpartition(":")[0] for worker in client.scheduler_info()["workers"]}
        right = kill_workers(client, job)
        found = {
            "hosts": sorted(hosts),
            "right": right,
            "managed": managed(client, 0),
            "prefixes": sorted(tasks_of(client)),
            "mismatch": mismatch(client),
            "after mismatch": managed(client, 100),
        }
    begin = time.monotonic()
    with started(job) as (_, client):  # the scheduler restarts at the same address
        found["restarted"] = managed(client, 200)
        found["tasks after restart"] = tasks_of(client)
        found["restart seconds"] = time.monotonic() - begin
    return found


def main() -> None:
    logging.disable(logging.CRITICAL)
    print(json.dumps(run(json.loads(sys.argv[1]))))


if __name__ == "__main__":
    main()
