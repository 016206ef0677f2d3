"""Plugin of a Dask worker: memrt around each task. Imports distributed."""

from __future__ import annotations

import functools
import inspect
import threading
from collections.abc import Callable
from typing import Any

import dask
import distributed.worker
from dask.utils import key_split
from distributed.diagnostics.plugin import WorkerPlugin

from memrt._dask import task_keys, task_metrics
from memrt._dask.cluster_figures import NAME as HEARTBEAT
from memrt._dask.heartbeat import Heartbeat
from memrt._dask.recording import start_recording, stop_recording
from memrt._dask.tasks import PROCESS, run_task, task_rows
from memrt._dask.worker_memory import WorkerMemory
from memrt._policy.enabling import enable, enabled
from memrt._policy.live_policies import default_policy

NAME = "memrt"
"""Name of the plugin in distributed."""
_HOOK = "_run_task"


class MemrtPlugin(WorkerPlugin):  # type: ignore[misc]
    """Plugin that runs the tasks of a worker on memrt."""

    def __init__(
        self, limit: int | str | None, record: bool = False, by_key: tuple[str, ...] = ()
    ) -> None:
        self.limit = limit
        self.record = record
        self.by_key = by_key

    def setup(self, worker: Any) -> None:
        """Put memrt in force for tasks from now on, and set the limit."""
        _put_hook(worker)
        task_keys.choose(self.by_key)
        if enabled() is None:
            enable()
        _memories[id(worker)] = WorkerMemory(worker, self.limit)
        _memories[id(worker)].start()
        if self.record:
            start_recording()
        worker.metrics[HEARTBEAT] = _read_heartbeat
        task_metrics.register(_address)

    def teardown(self, worker: Any) -> None:
        """Leave further tasks to NumPy's own allocator. Memory stays valid."""
        _remove_hook(worker)
        worker.metrics.pop(HEARTBEAT, None)
        memory = _memories.pop(id(worker), None)
        if memory is not None:
            memory.stop()
        if not _workers:
            stop_recording()


def configured_plugin() -> MemrtPlugin:
    """Return the plugin with the options `memrt` of the configuration of Dask."""
    read = dask.config.get
    by_key = task_keys.read_patterns(read("memrt.by-key", ()))
    return MemrtPlugin(read("memrt.limit", "auto"), read("memrt.record", False), by_key)


# --- The hook: distributed runs each task in a copied context, which no setting of a thread
# changes. Its public interface has no call around a task. ---

_lock = threading.Lock()
_workers: set[int] = set()
_memories: dict[int, WorkerMemory] = {}
_original: Callable[..., Any] | None = None


def _put_hook(worker: Any) -> None:
    global _original
    with _lock:
        _workers.add(id(worker))
        if _original is None:
            original = getattr(distributed.worker, _HOOK, None)
            _check_hook(original)
            _original = original
            setattr(distributed.worker, _HOOK, _hooked(original))


def _check_hook(original: Any) -> None:
    names = [] if original is None else list(inspect.signature(original).parameters)
    if names[:4] != ["task", "data", "execution_state", "key"]:
        raise RuntimeError(
            f"distributed must run tasks by worker.{_HOOK}(task, data, execution_state, key, ...), "
            f"got distributed {distributed.__version__}: use another version of distributed"
        )


def _remove_hook(worker: Any) -> None:
    global _original
    with _lock:
        _workers.discard(id(worker))
        if not _workers and _original is not None:
            present = getattr(distributed.worker, _HOOK)
            if getattr(present, "__wrapped__", None) is _original:
                setattr(distributed.worker, _HOOK, _original)
                _original = None


def _hooked(original: Any) -> Callable[..., Any]:
    @functools.wraps(original)
    def run(task: Any, data: Any, execution_state: Any, key: Any, *rest: Any) -> Any:
        if not _workers:
            return original(task, data, execution_state, key, *rest)
        policy, prefix = enabled() or default_policy(), key_split(key)
        if task_keys.patterns and task_keys.is_match(prefix, task_keys.patterns):
            return task_keys.run_key(
                key, prefix, policy, original, task, data, execution_state, key, *rest
            )
        return run_task(prefix, policy, original, task, data, execution_state, key, *rest)

    return run


_heartbeat = Heartbeat()


def _read_heartbeat(worker: Any) -> dict[str, Any]:
    return _heartbeat.read([each.worker for each in _memories.values()])


def _address() -> str | None:
    """Return the address of the first worker of this process."""
    return next((str(each.worker.address) for each in _memories.values()), None)


def read_tasks() -> tuple[str, list[dict[str, Any]]]:
    """Return the process and the accounts of a worker. Workers of one process share both."""
    return PROCESS, task_rows()


def read_keys() -> tuple[str, list[dict[str, Any]]]:
    """Return the process and the accounts of its kept keys."""
    return PROCESS, task_keys.key_rows()
