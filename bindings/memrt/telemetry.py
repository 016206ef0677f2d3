"""Statistics for other programs: metrics, JSON, log records, Numba's counters.

Metrics: metrics, metrics_collector, register_instruments.
JSON: stats_json, stats_schema.
Profiles of the tracked buffers: heap_profile.
Log records of refused allocations: log_refusals.
Counters as in Numba: get_allocation_stats.
"""

from typing import TYPE_CHECKING

from memrt._support.public import import_at_first_use

if TYPE_CHECKING:
    from memrt._leaks.refusal_log import log_refusals
    from memrt._stats.snapshot import get_allocation_stats
    from memrt._telemetry.instruments import register_instruments
    from memrt._telemetry.metrics import metrics, metrics_collector
    from memrt._telemetry.stats_json import stats_json, stats_schema
    from memrt._tracking.heap_profile import heap_profile
else:
    __getattr__ = import_at_first_use(
        __name__,
        {
            "memrt._leaks.refusal_log": "log_refusals",
            "memrt._stats.snapshot": "get_allocation_stats",
            "memrt._telemetry.instruments": "register_instruments",
            "memrt._telemetry.metrics": "metrics metrics_collector",
            "memrt._telemetry.stats_json": "stats_json stats_schema",
            "memrt._tracking.heap_profile": "heap_profile",
        },
    )

__all__ = [
    "get_allocation_stats",
    "heap_profile",
    "log_refusals",
    "metrics",
    "metrics_collector",
    "register_instruments",
    "stats_json",
    "stats_schema",
]


def __dir__() -> list[str]:
    return list(__all__)
