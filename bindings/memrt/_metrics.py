"""Metrics: the statistics as OpenMetrics has them, as text and for prometheus_client."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from memrt import _memrt
from memrt._extras import expect
from memrt._policy import policies as live_policies
from memrt._scopes import scope_name
from memrt._scopes import scopes as scope_tree
from memrt._stats import Stats, stats

if TYPE_CHECKING:
    from prometheus_client.core import Metric
    from prometheus_client.registry import Collector


class _Figure(NamedTuple):
    """How a field of the statistics is called as a metric."""

    field: str
    name: str
    kind: str
    unit: str
    help: str


_FIGURES = (
    _Figure("alloc", "blocks_allocated", "counter", "", "Blocks ever made"),
    _Figure("free", "blocks_freed", "counter", "", "Blocks ever freed"),
    _Figure("realloc", "blocks_resized", "counter", "", "Blocks ever resized"),
    _Figure("mi_alloc", "meminfos_allocated", "counter", "", "MemInfos ever made"),
    _Figure("mi_free", "meminfos_freed", "counter", "", "MemInfos ever destroyed"),
    _Figure("failed", "requests_refused", "counter", "", "Requests refused"),
    _Figure("total", "allocated_bytes", "counter", "bytes", "Bytes ever allocated"),
    _Figure("live", "live_bytes", "gauge", "bytes", "Bytes in use now"),
    _Figure("peak", "peak_bytes", "gauge", "bytes", "Most bytes in use since start or reset"),
    _Figure("peak_error", "peak_error_bytes", "gauge", "bytes", "How far the peak may be off"),
    _Figure("adopted", "adopted_bytes", "gauge", "bytes", "Bytes of live adopted buffers"),
    _Figure("cached", "cached_bytes", "gauge", "bytes", "Bytes kept for reuse"),
    _Figure("reserved", "reserved_bytes", "gauge", "bytes", "Bytes taken from allocators"),
    _Figure("inherited", "inherited_bytes", "gauge", "bytes", "Live bytes born before the fork"),
    _Figure("inherited_blocks", "inherited_blocks", "gauge", "", "Live blocks born before it"),
    _Figure(
        *("inherited_error", "inherited_error_bytes", "gauge", "bytes"),
        "Live bytes beyond these that may be, too",
    ),
    _Figure("exported", "exported_references", "gauge", "", "References other libraries have"),
)


class _Family(NamedTuple):
    """One metric with its samples, each with the values of the labels."""

    name: str
    kind: str
    unit: str
    help: str
    labels: tuple[str, ...]
    samples: list[tuple[tuple[str, ...], int]]


_Accounts = list[tuple[tuple[str, ...], Stats]]


def _of_level(
    prefix: str, whose: str, labels: tuple[str, ...], accounts: _Accounts, leave_out: str = ""
) -> Iterator[_Family]:
    for figure in _FIGURES:
        if figure.field != leave_out:
            samples = [(values, getattr(account, figure.field)) for values, account in accounts]
            name = f"memrt_{prefix}{figure.name}"
            help = f"{figure.help}, {whose}"
            yield _Family(name, figure.kind, figure.unit, help, labels, samples)


def _families(policies: bool, scopes: bool) -> Iterator[_Family]:
    release = (_memrt.features()["version"],)
    yield _Family(
        "memrt_build", "info", "", "The memrt that is loaded", ("version",), [(release, 1)]
    )
    yield from _of_level("", "by the process", (), [((), stats())])
    if policies:
        owned: _Accounts = [((p.name, str(p._index)), stats(p)) for p in live_policies()]
        yield from _of_level("policy_", "by policy", ("policy", "index"), owned)
    if scopes:
        born: _Accounts = [((scope_name(s.path),), s.stats()) for s in scope_tree()]
        yield from _of_level("scope_", "by scope with those in it", ("scope",), born, "cached")


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


_SUFFIXES = {"counter": "_total", "info": "_info", "gauge": ""}


def _lines(family: _Family) -> Iterator[str]:
    yield f"# TYPE {family.name} {family.kind}"
    if family.unit:
        yield f"# UNIT {family.name} {family.unit}"
    yield f"# HELP {family.name} {_escaped(family.help)}"
    for values, value in family.samples:
        pairs = zip(family.labels, values, strict=True)
        labels = ",".join(f'{label}="{_escaped(text)}"' for label, text in pairs)
        labels = f"{{{labels}}}" if labels else ""
        yield f"{family.name}{_SUFFIXES[family.kind]}{labels} {value}"


def metrics(*, policies: bool = True, scopes: bool = False) -> str:
    """The statistics as text of OpenMetrics, to be served to Prometheus and its like.

    Served as ``application/openmetrics-text; version=1.0.0; charset=utf-8``. Figures of the process
    are called ``memrt_live_bytes`` and the like, those of policies ``memrt_policy_live_bytes`` with
    the labels `policy` and `index`, those of scopes ``memrt_scope_live_bytes`` with the label
    `scope`, whose names have slashes between them. Counters begin at 0 with the process.

    Args:
        policies: with the figures of each live policy.
        scopes: with those of each scope; not for programs that make scopes without end, for each is
            a time series of its own.
    """
    lines = (line for family in _families(policies, scopes) for line in _lines(family))
    return "\n".join([*lines, "# EOF\n"])


class MetricsCollector:
    """What :func:`metrics_collector` makes: reads the statistics each time it is asked."""

    def __init__(self, policies: bool, scopes: bool) -> None:
        self._chosen = (policies, scopes)

    def collect(self) -> Iterable[Metric]:
        """The metrics as they are now."""
        return list(map(_metric, _families(*self._chosen)))

    def describe(self) -> Iterable[Metric]:
        """The same, for a registry that wants their names; these do not change."""
        return self.collect()


def _metric(family: _Family) -> Metric:
    from prometheus_client.core import Metric

    metric = Metric(family.name, family.help, family.kind, family.unit)
    for values, value in family.samples:
        labels = dict(zip(family.labels, values, strict=True))
        metric.add_sample(family.name + _SUFFIXES[family.kind], labels, value)
    return metric


def metrics_collector(*, policies: bool = True, scopes: bool = False) -> Collector:
    """The same metrics as :func:`metrics` for a registry of prometheus_client.

    ::

        from prometheus_client import REGISTRY

        REGISTRY.register(memrt.metrics_collector())

    Args:
        policies: as in :func:`metrics`.
        scopes: as in :func:`metrics`.

    Raises:
        ImportError: when prometheus_client is not installed.
    """
    expect("prometheus_client", "memrt.metrics_collector()")
    return MetricsCollector(policies, scopes)
