"""Measure the cost of memrt's account on the scheduler of many workers, and print JSON.

    growth.py WORKERS

A process has all workers, without tasks. Each worker answers with the rows of PREFIXES prefixes.
Another process is the client and calls `memrt.dask.stats`. The scheduler runs in this process, and
the figures are the processor time of this process.
"""

from __future__ import annotations

import asyncio
import json
import logging
import multiprocessing
import statistics
import sys
import time
from typing import Any

import memrt.dask
from distributed import Client, Scheduler, Worker
from distributed.protocol import dumps

PREFIXES, READINGS, WAIT = 20, 5, 300


def fill() -> None:
    """Make an account for each prefix."""
    from memrt._dask import tasks
    from memrt._policy.live_policies import default_policy

    for number in range(PREFIXES):
        message = {"op": "task-finished", "nbytes": 8_000_000}
        tasks.run_task(f"rechunk-merge-{number}", default_policy(), lambda m=message: m)


async def _workers(address: str, count: int, end: Any) -> None:
    fill()
    made = [
        Worker(address, nthreads=1, dashboard=False, memory_limit=0, name=number)
        for number in range(count)
    ]
    for first in range(0, count, 25):
        await asyncio.gather(*made[first : first + 25])
    await asyncio.to_thread(end.wait)
    await asyncio.gather(*(worker.close(nanny=False) for worker in made))


def workers(address: str, count: int, end: Any) -> None:
    logging.disable(logging.CRITICAL)
    asyncio.run(_workers(address, count, end))


def client(address: str, count: int, requests: Any, answers: Any) -> None:
    """Read the statistics once for each request, and answer with the bytes of all replies."""
    from memrt._dask.plugin import read_tasks

    logging.disable(logging.CRITICAL)
    with Client(address, timeout=WAIT) as own:
        own.wait_for_workers(count, timeout=WAIT)
        replies = own.run(read_tasks)
        answers.put(sum(len(frame) for frame in dumps(replies)))
        while requests.get():
            memrt.dask.stats(own)
            answers.put(None)


async def measure(count: int) -> dict[str, Any]:
    context = multiprocessing.get_context("spawn")
    requests, answers, end = context.Queue(), context.Queue(), context.Event()
    async with Scheduler(port=0, dashboard=False, host="127.0.0.1") as scheduler:
        processes = [
            context.Process(target=workers, args=(scheduler.address, count, end)),
            context.Process(target=client, args=(scheduler.address, count, requests, answers)),
        ]
        for process in processes:
            process.start()
        size = await asyncio.to_thread(answers.get, timeout=WAIT)
        idle = await _spent(asyncio.sleep(2))
        costs, took = [], []
        for _ in range(READINGS):
            begin = time.perf_counter()
            requests.put(True)
            costs.append(await _spent(asyncio.to_thread(answers.get, timeout=WAIT)))
            took.append(time.perf_counter() - begin)
        requests.put(False)
        await asyncio.to_thread(processes[1].join)
        end.set()
        await asyncio.to_thread(processes[0].join, 60)
        processes[0].kill()
    return {
        "workers": count,
        "bytes": size,
        "cpu": statistics.median(costs),
        "seconds": statistics.median(took),
        "idle cpu per second": idle / 2,
    }


async def _spent(waiting: Any) -> float:
    """Return the processor time of this process until an awaitable ends."""
    begin = time.process_time()
    await waiting
    return time.process_time() - begin


def main() -> None:
    logging.disable(logging.CRITICAL)
    print(json.dumps(asyncio.run(measure(int(sys.argv[1])))))


if __name__ == "__main__":
    main()
