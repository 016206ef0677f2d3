"""Metrics of tasks by worker and prefix for Prometheus, at /metrics of each worker.

distributed shows the default registry of prometheus_client at the HTTP address of a worker.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from memrt._dask.tasks import task_rows
from memrt._policy.limit_amount import read_limit
from memrt._stats.snapshot import stats

if TYPE_CHECKING:
    from prometheus_client.core import Metric

_TASKS = (
    ("tasks", "counter", "", "Tasks that ended"),
    ("errors", "counter", "", "Tasks that ended by an exception"),
    ("failed", "counter", "", "Requests for memory that were refused"),
    ("live", "gauge", "bytes", "Bytes allocated by the tasks and in use now"),
    ("peak", "gauge", "bytes", "Most bytes in use by one task"),
    ("temporary", "counter", "bytes", "Bytes freed before the end of the allocating task"),
)


class TaskMetrics:
    """Collector of the metrics of this process. `address` returns the worker of the labels."""

    def __init__(self, address: Callable[[], str | None]) -> None:
        self._address = address

    def collect(self) -> Iterable[Metric]:
        """Return the metrics with their current values; none without a worker."""
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        worker = self._address()
        if worker is None:
            return
        rows = task_rows()
        for name, kind, unit, text in _TASKS:
            family: Any = CounterMetricFamily if kind == "counter" else GaugeMetricFamily
            metric = family(_full_name(name, unit), text, labels=["worker", "prefix"], unit=unit)
            for row in rows:
                metric.add_metric([worker, row["prefix"]], row[name])
            yield metric
        now = stats()
        figures = {"live": now.live, "cached": now.cached, "limit": read_limit(None)}
        for name, value in figures.items():
            if value is not None:
                metric = GaugeMetricFamily(
                    f"memrt_worker_{name}_bytes", f"Memory of the worker: {name}",
                    labels=["worker"], unit="bytes",
                )  # fmt: skip
                metric.add_metric([worker], value)
                yield metric


def _full_name(name: str, unit: str) -> str:
    return f"memrt_task_{name}_{unit}" if unit else f"memrt_task_{name}"


_registered = False


def register(address: Callable[[], str | None]) -> None:
    """Add the metrics to the default registry of prometheus_client, if installed, once."""
    global _registered
    if _registered:
        return
    try:
        import prometheus_client
    except ImportError:
        return
    prometheus_client.REGISTRY.register(TaskMetrics(address))
    _registered = True
