"""Export the statistics as OpenMetrics, as text and for prometheus_client."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from memrt import _memrt
from memrt._policy.live_policies import policies as live_policies
from memrt._policy.scope_tree import scope_name
from memrt._policy.scope_tree import scopes as scope_tree
from memrt._process.account import process_memory
from memrt._stats.latency import BOUNDS, Latency, count_below, latency
from memrt._stats.snapshot import Stats, stats
from memrt._support.extras import expect
from memrt._support.public import public

if TYPE_CHECKING:
    from prometheus_client.core import Metric
    from prometheus_client.registry import Collector


class _Figure(NamedTuple):
    """Metric of one field of the statistics."""

    field: str
    name: str
    kind: str
    unit: str
    help: str


_FIGURES = (
    _Figure("alloc", "blocks_allocated", "counter", "", "Blocks allocated so far"),
    _Figure("free", "blocks_freed", "counter", "", "Blocks freed so far"),
    _Figure("realloc", "blocks_resized", "counter", "", "Blocks resized so far"),
    _Figure("mi_alloc", "meminfos_allocated", "counter", "", "MemInfos created so far"),
    _Figure("mi_free", "meminfos_freed", "counter", "", "MemInfos destroyed so far"),
    _Figure("failed", "requests_refused", "counter", "", "Requests refused"),
    _Figure("total", "allocated_bytes", "counter", "bytes", "Bytes allocated so far"),
    _Figure("live", "live_bytes", "gauge", "bytes", "Bytes in use now"),
    _Figure("peak", "peak_bytes", "gauge", "bytes", "Most bytes in use since start or reset"),
    _Figure("peak_error", "peak_error_bytes", "gauge", "bytes", "Error bound of the peak"),
    _Figure("adopted", "adopted_bytes", "gauge", "bytes", "Bytes of live adopted buffers"),
    _Figure("cached", "cached_bytes", "gauge", "bytes", "Bytes kept for reuse"),
    _Figure("reserved", "reserved_bytes", "gauge", "bytes", "Bytes taken from allocators"),
    _Figure(
        "inherited", "inherited_bytes", "gauge", "bytes", "Live bytes allocated before the fork"
    ),
    _Figure(
        "inherited_blocks", "inherited_blocks", "gauge", "", "Live blocks allocated before the fork"
    ),
    _Figure(
        *("inherited_error", "inherited_error_bytes", "gauge", "bytes"),
        "Further live bytes possibly allocated before the fork",
    ),
    _Figure("exported", "exported_references", "gauge", "", "References held by other libraries"),
)


_Samples = list[tuple[tuple[str, ...], int]]
_Histograms = list[tuple[tuple[str, ...], Latency]]


class Family(NamedTuple):
    """A metric with its samples, each with the values of the labels."""

    name: str
    kind: str
    unit: str
    help: str
    labels: tuple[str, ...]
    samples: _Samples | _Histograms


_Accounts = list[tuple[tuple[str, ...], Stats]]


def _level_families(
    prefix: str, whose: str, labels: tuple[str, ...], accounts: _Accounts, leave_out: str = ""
) -> Iterator[Family]:
    for figure in _FIGURES:
        if figure.field != leave_out:
            samples = [(values, getattr(account, figure.field)) for values, account in accounts]
            name = f"memrt_{prefix}{figure.name}"
            help = f"{figure.help}, {whose}"
            yield Family(name, figure.kind, figure.unit, help, labels, samples)


def _memory_families() -> Iterator[Family]:
    """Return the account of the memory of the process; unknown figures are left out."""
    account = process_memory()
    parts = account.parts().items()
    for field, title in (("resident", "Bytes in memory"), ("mapped", "Bytes mapped")):
        values = [(name, getattr(part, field)) for name, part in parts]
        known: _Samples = [((name,), value) for name, value in values if value is not None]
        help = f"{title}, by part of the process"
        yield Family(f"memrt_{field}_bytes", "gauge", "bytes", help, ("part",), known)
    for field, help in (
        ("peak_resident", "Most bytes in memory since the start of the process"),
        ("swapped", "Bytes in swap space, of the process"),
        ("huge_asked", "Bytes of huge pages for which memrt asks"),
        ("huge_got", "Bytes in huge pages, of those for which memrt asks"),
    ):
        value = getattr(account, field)
        samples: _Samples = [] if value is None else [((), value)]
        yield Family(f"memrt_{field}_bytes", "gauge", "bytes", help, (), samples)


def read_families(policies: bool, scopes: bool, memory: bool) -> Iterator[Family]:
    """Read the chosen metrics, those of the process first."""
    release = (_memrt.features()["version"],)
    version: _Samples = [(release, 1)]
    yield Family("memrt_build", "info", "", "Loaded version of memrt", ("version",), version)
    yield from _level_families("", "by the process", (), [((), stats())])
    if policies:
        owned: _Accounts = [((p.name, str(p._index)), stats(p)) for p in live_policies()]
        yield from _level_families("policy_", "by policy", ("policy", "index"), owned)
    if scopes:
        inside: _Accounts = [((scope_name(s.path),), s.stats()) for s in scope_tree()]
        yield from _level_families(
            "scope_", "by scope, inner scopes included", ("scope",), inside, "cached"
        )
    if times := latency():
        histograms: _Histograms = [((path,), time) for path, time in times.items()]
        help = "Time of slow paths and system calls of memrt, by path"
        yield Family("memrt_path_seconds", "histogram", "seconds", help, ("path",), histograms)
    if memory:
        yield from _memory_families()


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


_SUFFIXES = {"counter": "_total", "info": "_info", "gauge": ""}


def _points(family: Family) -> Iterator[tuple[str, dict[str, str], float]]:
    """Return suffix, labels and value of each line of a metric."""
    for values, value in family.samples:
        labels = dict(zip(family.labels, values, strict=True))
        if isinstance(value, Latency):
            for bound, runs in zip(BOUNDS, count_below(value), strict=True):
                yield "_bucket", {**labels, "le": repr(bound / 1e9)}, runs
            yield "_bucket", {**labels, "le": "+Inf"}, value.count
            yield "_count", labels, value.count
            yield "_sum", labels, value.nanoseconds / 1e9
        else:
            yield _SUFFIXES[family.kind], labels, value


def _lines(family: Family) -> Iterator[str]:
    yield f"# TYPE {family.name} {family.kind}"
    if family.unit:
        yield f"# UNIT {family.name} {family.unit}"
    yield f"# HELP {family.name} {_escaped(family.help)}"
    for suffix, pairs, value in _points(family):
        labels = ",".join(f'{label}="{_escaped(text)}"' for label, text in pairs.items())
        labels = f"{{{labels}}}" if labels else ""
        yield f"{family.name}{suffix}{labels} {value}"


@public("memrt.telemetry")
def metrics(*, policies: bool = True, scopes: bool = False, memory: bool = False) -> str:
    """Return the statistics as OpenMetrics text, for Prometheus and compatible servers.

    Parameters
    ----------
    policies : bool, default True
        Whether to include the metrics of each live policy.
    scopes : bool, default False
        Whether to include the metrics of each scope. Leave False in programs with an unbounded
        number of scopes, because each scope is a separate time series.
    memory : bool, default False
        Whether to include the account of the memory of the whole process, from
        :func:`memrt.debug.process_memory`. The account takes milliseconds.

    Returns
    -------
    str
        Text of type ``application/openmetrics-text; version=1.0.0; charset=utf-8``.

    Raises
    ------
    OSError
        A file of /proc for the account cannot be read.

    Notes
    -----
    Metrics of the process have names like ``memrt_live_bytes``. Metrics of policies have names like
    ``memrt_policy_live_bytes``, and the labels `policy` and `index`. Metrics of scopes have names
    like ``memrt_scope_live_bytes``, and the label `scope`, a path with slashes between the names.
    Metrics of the account have names like ``memrt_resident_bytes``, and the label `part`. Metrics
    of huge pages are ``memrt_huge_asked_bytes`` and ``memrt_huge_got_bytes``. Counters begin at 0
    with the process. If the option ``MEMRT_LATENCY`` was 1, the histogram ``memrt_path_seconds``
    has the times of slow paths, with the label `path`.

    Examples
    --------
    >>> import memrt
    >>> "memrt_live_bytes" in memrt.telemetry.metrics(policies=False)
    True
    """
    lines = (line for family in read_families(policies, scopes, memory) for line in _lines(family))
    return "\n".join([*lines, "# EOF\n"])


class MetricsCollector:
    """Collector of :func:`metrics_collector`; reads the statistics at each collect()."""

    def __init__(self, policies: bool, scopes: bool, memory: bool) -> None:
        self._chosen = (policies, scopes, memory)

    def collect(self) -> Iterable[Metric]:
        """Return the metrics with their current values."""
        return list(map(_metric, read_families(*self._chosen)))

    def describe(self) -> Iterable[Metric]:
        """Return the metrics for a registry that reads their names, which do not change."""
        return self.collect()


def _metric(family: Family) -> Metric:
    from prometheus_client.core import Metric

    metric = Metric(family.name, family.help, family.kind, family.unit)
    for suffix, labels, value in _points(family):
        metric.add_sample(family.name + suffix, labels, value)
    return metric


@public("memrt.telemetry")
def metrics_collector(
    *, policies: bool = True, scopes: bool = False, memory: bool = False
) -> Collector:
    """Return a collector of the metrics of :func:`metrics`, for a registry of prometheus_client.

    Parameters
    ----------
    policies : bool, default True
        Whether to include the metrics of each live policy.
    scopes : bool, default False
        Whether to include the metrics of each scope.
    memory : bool, default False
        Whether to include the account of the memory of the whole process.

    Returns
    -------
    prometheus_client.registry.Collector
        Collector that reads the statistics at each collect().

    Raises
    ------
    ImportError
        prometheus_client is not installed.

    Examples
    --------
    >>> import memrt
    >>> from prometheus_client import CollectorRegistry, generate_latest
    >>> registry = CollectorRegistry()
    >>> registry.register(memrt.telemetry.metrics_collector())
    >>> b"memrt_live_bytes" in generate_latest(registry)
    True
    """
    expect("prometheus_client", "memrt.telemetry.metrics_collector()")
    return MetricsCollector(policies, scopes, memory)
