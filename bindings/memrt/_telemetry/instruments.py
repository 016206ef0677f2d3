"""Export the statistics as instruments of OpenTelemetry."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from memrt import _memrt
from memrt._stats.latency import Latency
from memrt._support.extras import needed
from memrt._support.public import public
from memrt._telemetry.metrics import Family, read_families

if TYPE_CHECKING:
    from opentelemetry.metrics import CallbackOptions, MeterProvider, Observation

_COUNTED = ("block", "meminfo", "request", "reference")
_LEVELS = ("policy", "scope")


class _Reader:
    """Reader of all families, once for the callbacks of one collection.

    The first callback of a collection reads all families. A callback that finds its family used
    belongs to a new collection.
    """

    def __init__(self, policies: bool, scopes: bool, memory: bool) -> None:
        self._chosen = (policies, scopes, memory)
        self._unused: dict[str, Family] = {}

    def families(self) -> Iterable[Family]:
        families = read_families(*self._chosen)
        return [family for family in families if family.kind in ("counter", "gauge")]

    def take(self, name: str) -> Family:
        found = self._unused.pop(name, None)
        if found is None:
            self._unused = {family.name: family for family in self.families()}
            found = self._unused.pop(name)
        return found


@public("memrt.telemetry")
def register_instruments(
    meter_provider: MeterProvider | None = None,
    *,
    policies: bool = True,
    scopes: bool = False,
    memory: bool = False,
) -> None:
    """Create the metrics of :func:`metrics` as observable instruments of OpenTelemetry.

    Parameters
    ----------
    meter_provider : opentelemetry.metrics.MeterProvider, optional
        Provider of the meter "memrt". None: the global provider.
    policies : bool, default True
        Whether to include the metrics of each live policy.
    scopes : bool, default False
        Whether to include the metrics of each scope.
    memory : bool, default False
        Whether to include the account of the memory of the whole process.

    Raises
    ------
    ImportError
        opentelemetry-api is not installed.

    Notes
    -----
    Names have dots, like ``memrt.live`` and ``memrt.policy.live``, and the unit ``By`` for bytes.
    An exporter for Prometheus gives them the names of :func:`metrics`, like ``memrt_live_bytes``.
    Attributes are the labels of the metrics. Sums over processes make sense for up-down counters,
    like live bytes, and not for gauges, like peaks. The histogram ``memrt_path_seconds`` is left
    out, because OpenTelemetry has no observable histograms.

    Call the function once for a provider. OpenTelemetry cannot remove instruments. Each collection
    reads the statistics once. A forked child needs a provider of its own, as for other instruments.

    Examples
    --------
    >>> import memrt
    >>> from opentelemetry.sdk.metrics import MeterProvider
    >>> from opentelemetry.sdk.metrics.export import InMemoryMetricReader
    >>> reader = InMemoryMetricReader()
    >>> memrt.telemetry.register_instruments(MeterProvider([reader]), policies=False)
    >>> [scope] = reader.get_metrics_data().resource_metrics[0].scope_metrics
    >>> "memrt.live" in [metric.name for metric in scope.metrics]
    True
    """
    api = needed("opentelemetry.metrics", "memrt.telemetry.register_instruments()")
    meter = api.get_meter("memrt", _memrt.features()["version"], meter_provider)
    create = {
        "counter": meter.create_observable_counter,
        "gauge": meter.create_observable_gauge,
        "sum": meter.create_observable_up_down_counter,
    }
    reader = _Reader(policies, scopes, memory)
    for family in reader.families():
        create[_kind_of(family)](
            _name_of(family),
            [_callback(reader, family.name, api.Observation)],
            _unit_of(family),
            family.help,
        )


def _callback(
    reader: _Reader, name: str, observation: type[Observation]
) -> Callable[[CallbackOptions], Iterable[Observation]]:
    def observe(options: CallbackOptions) -> Iterable[Observation]:
        family = reader.take(name)
        return [
            observation(value, dict(zip(family.labels, values, strict=True)))
            for values, value in family.samples
            if not isinstance(value, Latency)
        ]

    return observe


def _name_of(family: Family) -> str:
    parts = family.name.removesuffix("_bytes").split("_")
    levels = 2 if parts[1] in _LEVELS else 1
    return ".".join([*parts[:levels], "_".join(parts[levels:])])


def _kind_of(family: Family) -> str:
    """Return the kind of the instrument. Peaks and errors of several processes have no sum."""
    if family.kind == "counter":
        return "counter"
    return "gauge" if {"peak", "error"} & set(family.name.split("_")) else "sum"


def _unit_of(family: Family) -> str:
    if family.unit == "bytes":
        return "By"
    return next(f"{{{word}}}" for word in _COUNTED if f"{word}s" in family.name)
