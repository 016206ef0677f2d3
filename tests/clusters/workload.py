"""Run an image stack through Dask on two workers, and print the outcome as JSON.

    workload.py JOB    JOB is a JSON object: memrt, frames, chunk, side, limit, runs

The stack is generated, so a stack may be larger than the disk. Each task takes a chunk of frames:
`load` makes the frames, `normalize` centres and scales each frame. The result is the mean frame.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import threading
import time
from typing import Any

import dask
import dask.array as da
import numpy as np
import psutil
from distributed import Client, LocalCluster
from distributed.scheduler import KilledWorker

WORKERS = 2
TIMEOUT, ALIVE = 600, 180  # seconds for the stack, and for a task afterwards
PERIOD = 0.02  # seconds between readings of resident memory


def load(block_id: Any, shape: tuple[int, ...], chunk: int) -> np.ndarray:
    """Return a chunk of frames: one pattern, with another gain in each frame."""
    count = min(chunk, shape[0] - block_id[0] * chunk)
    rows = np.arange(shape[1], dtype=np.float32)[:, None]
    pattern = (rows * 7 + np.arange(shape[2], dtype=np.float32)) % 251
    stack = np.empty((count, *shape[1:]), np.float32)
    for number in range(count):
        np.multiply(pattern, 1 + (block_id[0] * chunk + number) % 10, out=stack[number])
    return stack


def normalize(stack: np.ndarray) -> np.ndarray:
    """Return the frames with mean 0 and deviation 1, as most programs write it."""
    centred = stack - stack.mean(axis=(1, 2), keepdims=True)
    return centred / centred.std(axis=(1, 2), keepdims=True)


def mean_frame(job: dict[str, Any], run: int) -> da.Array:
    """Return the mean of all frames, not computed, with other keys for each run."""
    shape = (job["frames"], job["side"], job["side"])
    chunks = ((*_sizes(job["frames"], job["chunk"]),), *((side,) for side in shape[1:]))
    stack = da.map_blocks(
        load, shape=shape, chunk=job["chunk"], chunks=chunks, dtype=np.float32,
        name=f"load-{run}", meta=np.empty((0, 0, 0), np.float32),
    )  # fmt: skip
    return stack.map_blocks(normalize, dtype=np.float32).mean(axis=0)


def _sizes(frames: int, chunk: int) -> list[int]:
    return [min(chunk, frames - first) for first in range(0, frames, chunk)]


class Peaks(threading.Thread):
    """Reader of the highest resident memory of one worker process, until stop()."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.highest = 0
        self.processes: set[int] = set()
        self._ended = threading.Event()

    def run(self) -> None:
        while not self._ended.wait(PERIOD):
            for child in psutil.Process().children(recursive=True):
                try:
                    if "spawn_main" in " ".join(child.cmdline()):
                        self.highest = max(self.highest, child.memory_info().rss)
                        self.processes.add(child.pid)
                except psutil.Error:
                    continue

    def stop(self) -> None:
        self._ended.set()
        self.join()


def outcome_of(client: Client, job: dict[str, Any], run: int) -> str:
    """Compute once. Return "done", or the name of the exception."""
    future = client.compute(mean_frame(job, run))
    try:
        frame = future.result(timeout=TIMEOUT)
    except (MemoryError, KilledWorker, TimeoutError) as error:
        return type(error).__name__
    finally:
        future.release()
    return "done" if abs(float(frame.mean())) < 1e-3 else "wrong"


def is_alive(client: Client, run: int) -> bool:
    """Return whether the cluster computes another task."""
    try:
        return client.submit(sum, [run, 1], key=f"alive-{run}").result(ALIVE) == run + 1
    except TimeoutError:
        return False


def run(job: dict[str, Any]) -> dict[str, Any]:
    """Compute `runs` times on one cluster. Return outcomes, seconds, peak and figures by prefix."""
    runs, peaks = [], Peaks()
    with LocalCluster(
        n_workers=WORKERS, threads_per_worker=1, memory_limit=job["limit"], dashboard_address=None
    ) as cluster, Client(cluster) as client:  # fmt: skip
        if job["memrt"]:
            import memrt.dask

            memrt.dask.install(client, limit="auto")
        before = set(client.run(os.getpid).values())
        peaks.start()
        for number in range(job["runs"]):
            begin = time.monotonic()
            outcome = outcome_of(client, job, number)
            seconds = time.monotonic() - begin
            survived = is_alive(client, number) and set(client.run(os.getpid).values()) == before
            runs.append({"outcome": outcome, "seconds": seconds, "survived": survived})
        peaks.stop()
        killed = len(peaks.processes - before)
        figures = []
        if job["memrt"]:
            figures = [
                {"prefix": row.prefix, "ratio": row.ratio, "failed": row.failed, "peak": row.peak}
                for row in memrt.dask.stats(client).values()
            ]
    return {"runs": runs, "peak": peaks.highest, "restarts": killed, "prefixes": figures}


def main() -> None:
    logging.disable(logging.CRITICAL)
    dask.config.set({"distributed.worker.profile.enabled": False})
    print(json.dumps(run(json.loads(sys.argv[1]))))


if __name__ == "__main__":
    main()
