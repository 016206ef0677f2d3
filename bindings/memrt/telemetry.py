"""Statistics for other programs: Prometheus and OpenMetrics text, JSON, Numba's counters.

Metrics: metrics, metrics_collector.
JSON: stats_json, stats_schema.
Counters as in Numba: get_allocation_stats.
"""

from memrt._stats.snapshot import get_allocation_stats
from memrt._support.installation import make_public
from memrt._telemetry.metrics import metrics, metrics_collector
from memrt._telemetry.stats_json import stats_json, stats_schema

__all__ = [
    "get_allocation_stats",
    "metrics",
    "metrics_collector",
    "stats_json",
    "stats_schema",
]


def __dir__() -> list[str]:
    return list(__all__)


make_public(globals())
