"""Memory of Dask workers: survival, released caches, spilling, and facts about distributed."""

from __future__ import annotations

import asyncio
import inspect
import json
import logging
import os
import subprocess
import sys
import threading
from pathlib import Path

import distributed
import memrt
import numpy as np
import pytest
from distributed.spill import ManualEvictProto
from distributed.worker_memory import NannyMemoryManager, WorkerMemoryManager
from memrt._dask import worker_memory
from memrt._dask.worker_memory import WorkerMemory, missing_fact

PROGRAM = Path(__file__).with_name("survival.py")
MIB = 1 << 20


class Data(dict):
    """Results of a worker, with the public protocol of distributed for spilling."""

    def __init__(self, arrays):
        self.fast = arrays
        self.evicted = 0

    def evict(self):
        """Drop a result, and return the size."""
        self.evicted += 1
        return self.fast.pop().nbytes


class Manager:
    """Memory manager with the attributes of distributed's."""

    memory_target_fraction, memory_spill_fraction, memory_pause_fraction = 0.5, 0.6, 0.8
    memory_monitor = WorkerMemoryManager.memory_monitor

    def __init__(self, limit):
        self.memory_limit = limit


class Monitor:
    """Monitor of a worker, with a given resident memory."""

    memory = 0

    def get_process_memory(self):
        """Return the resident bytes."""
        return self.memory


class Worker:
    """Worker with the attributes that memrt reads."""

    def __init__(self, limit, arrays=()):
        self.memory_manager = Manager(limit)
        self.monitor = Monitor()
        self.data = Data(list(arrays))


@pytest.fixture
def loop():
    """Run an event loop in a thread, and return a function that calls a function there."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()

    async def called(function):
        return function()

    yield lambda function: asyncio.run_coroutine_threadsafe(called(function), loop).result(60)
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


@pytest.fixture
def memory(loop):
    """Return a function that starts the memory of a worker. The end stops the memory."""
    started = []

    def start(worker, limit="auto"):
        each = WorkerMemory(worker, limit)
        started.append(each)
        loop(each.start)
        return each

    yield start
    for each in started:
        loop(each.stop)
    memrt.limit(None)
    memrt.release_unused()


def others():
    return worker_memory.bytes_of_others()


@pytest.mark.parametrize("stock", [False, True])
def test_worker_survives_only_with_memrt(stock, tmp_path):
    command = [sys.executable, PROGRAM, *(["--stock"] if stock else [])]
    environment = {**os.environ, "DASK_TEMPORARY_DIRECTORY": str(tmp_path)}
    output = subprocess.check_output(
        command, text=True, timeout=250, env=environment, stderr=subprocess.DEVNULL
    )
    (outcome,) = json.loads(output.splitlines()[-1])["outcomes"]
    assert outcome["survived"] is not stock, outcome
    assert outcome["error"] == ("KilledWorker" if stock else "MemoryError")


def test_installed_distributed_has_the_known_facts():
    assert distributed.__version__ == "2026.8.0"
    manager = inspect.getsource(WorkerMemoryManager)
    assert "memory = worker.monitor.get_process_memory()\n        self._maybe_pause" in manager
    assert "psutil.Process(process.pid).memory_info().rss" in inspect.getsource(NannyMemoryManager)
    assert "This is public API" in ManualEvictProto.__doc__
    assert missing_fact(Worker(MIB)) == ""


def test_limit_follows_memory_of_other_kinds(memory):
    most = others() + 800 * MIB
    each = memory(Worker(most))
    before = memrt.debug.limits()[0]
    assert abs(before.limit + others() - 0.9 * most) < 60 * MIB
    assert abs(before.limit - before.soft - 0.3 * most) < 2
    ballast = b"x" * (300 * MIB)
    each._next_measurement = 0.0
    each.read()
    assert 200 * MIB < before.limit - memrt.debug.limits()[0].limit < 350 * MIB
    del ballast
    memrt.limit("500 MiB")
    each._next_measurement = 0.0
    each.read()
    assert memrt.debug.limits()[0].limit == 500 * MIB


def test_cached_memory_is_released_before_a_worker_spills(memory):
    worker = Worker(100 * MIB)
    memory(worker, None)
    memrt.zeros(4 * MIB, "u1")[:] = 1
    worker.monitor.memory = 60 * MIB
    assert worker.monitor.get_process_memory() == 60 * MIB
    assert memrt.stats().cached >= 4 * MIB
    worker.monitor.memory += 1
    worker.monitor.get_process_memory()
    assert memrt.stats().cached < 4 * MIB


def test_refused_allocation_waits_for_spilling(memory):
    most = others() + 400 * MIB
    worker = Worker(most, [memrt.zeros(20 * MIB, "u1") for _ in range(10)])
    memory(worker, None)
    memrt.limit(210 * MIB)
    assert memrt.zeros(40 * MIB, "u1").nbytes == 40 * MIB
    assert 2 <= worker.data.evicted <= 10
    evicted = worker.data.evicted
    with pytest.raises(MemoryError):
        memrt.zeros(500 * MIB, "u1")
    assert worker.data.evicted == evicted


def test_event_loop_does_not_wait_for_itself(memory, loop):
    worker = Worker(others() + 400 * MIB, [memrt.zeros(20 * MIB, "u1")])
    memory(worker, None)
    memrt.limit(30 * MIB)
    with pytest.raises(MemoryError):
        loop(lambda: memrt.zeros(20 * MIB, "u1"))
    assert worker.data.evicted == 0


def test_stop_ends_the_wait_of_a_refused_allocation(memory, loop):
    worker = Worker(others() + 400 * MIB, [memrt.zeros(20 * MIB, "u1") for _ in range(4)])
    each = memory(worker, None)
    memrt.limit(90 * MIB)
    refused = []

    def allocate():
        try:
            memrt.zeros(40 * MIB, "u1")
        except MemoryError:
            refused.append(True)

    thread = threading.Thread(target=allocate)

    def stop_during_the_wait():
        thread.start()
        while not each._waits:
            threading.Event().wait(0.001)
        each.stop()

    loop(stop_during_the_wait)
    thread.join(60)
    assert (refused, worker.data.evicted) == ([True], 0)


def test_rise_above_the_soft_limit_spills(memory):
    worker = Worker(others() + 400 * MIB, [memrt.zeros(20 * MIB, "u1") for _ in range(4)])
    each = memory(worker, None)
    memrt.limit("200 MiB", soft="100 MiB")
    each._most = others() + 100 * MIB  # the target is below the live bytes
    table = memrt.zeros(40 * MIB, "u1")
    for _ in range(1000):
        if worker.data.evicted:
            break
        threading.Event().wait(0.01)
    assert (worker.data.evicted > 0, table.nbytes) == (True, 40 * MIB)


def test_worker_without_spilling_or_limit_is_left_alone(memory):
    worker = Worker(100 * MIB)
    worker.memory_manager.memory_spill_fraction = False
    assert memory(worker, None)._closable == []
    worker = Worker(None)
    memory(worker, "64 MiB")
    assert memrt.debug.limits()[0].limit == 64 * MIB
    assert "get_process_memory" not in vars(worker.monitor)


def test_stop_restores_the_monitor(loop):
    worker = Worker(100 * MIB)
    each = WorkerMemory(worker, None)
    loop(each.start)
    assert worker.monitor.get_process_memory == each.read
    loop(each.stop)
    assert worker.monitor.get_process_memory() == 0
    assert "get_process_memory" not in vars(worker.monitor)


@pytest.mark.parametrize("part", ["monitor", "memory_monitor", "memory_pause_fraction"])
def test_unknown_version_is_left_alone_with_one_warning(part, memory, monkeypatch, caplog):
    monkeypatch.setattr(worker_memory, "_warned", False)
    worker = Worker(others() + 800 * MIB)
    if part == "monitor":
        worker.monitor = None
    elif part == "memory_monitor":
        monkeypatch.setattr(Manager, part, lambda self, worker: None)
    else:
        monkeypatch.delattr(Manager, part)
    with caplog.at_level(logging.WARNING):
        memory(worker)
        memory(worker)
    (record,) = caplog.records
    assert f"got distributed {distributed.__version__}: memrt sets the limit once" in record.message
    assert memrt.debug.limits()[0].limit > 500 * MIB
    assert np.zeros(1).nbytes == 8
