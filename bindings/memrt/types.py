"""Types of results: statistics, buffers, holders, scopes, traces.

Functions of memrt return these objects. Programs need the names for annotations and
``isinstance``. Users make :class:`Buffer`, to collect items of unknown number, and :class:`Column`
and :class:`Tensor`, to pass arrays to other libraries. Each name is imported at its first use, so
``import memrt.types`` loads no other module.
"""

from typing import TYPE_CHECKING

import numpy as np  # noqa: F401 - typing.get_type_hints resolves annotations of the types here

from memrt._memrt import Buffer, Tensor
from memrt._support.public import import_at_first_use

if TYPE_CHECKING:
    from memrt._allocators.placement import Placement, PlacementAsked
    from memrt._arrays.alignment import Alignment
    from memrt._arrays.freezing import Frozen
    from memrt._faults.outcomes import Exhaustion, FailurePoint
    from memrt._holders.naming import Referrer
    from memrt._holders.report import Holder, Holders, NamedReference
    from memrt._holders.retention import Retained, Retention
    from memrt._interop.arrow_column import Column
    from memrt._leaks.growth import Growth, Trend
    from memrt._leaks.leaks import LeakGroup
    from memrt._policy.limit import Limit
    from memrt._policy.scope import Scope
    from memrt._policy.scope_tree import ScopeTree
    from memrt._process.account import MemoryPart, ProcessMemory
    from memrt._process.pressure import Pressure, PressureCallback
    from memrt._stats.latency import Latency
    from memrt._stats.memory import MemoryStats
    from memrt._stats.moment import Snapshot
    from memrt._stats.references import ReferenceCounts
    from memrt._stats.snapshot import AllocationStats, Stats
    from memrt._stats.threads import ThreadStats
    from memrt._support.options import Option
    from memrt._trace.reader import Mark, TracePolicy
    from memrt._trace.recorder import TraceStats
    from memrt._trace.usage import TraceUsage
    from memrt._tracking.find import Location
    from memrt._tracking.hooks import BlockEvent
    from memrt._tracking.live import LiveBuffer, SiteUsage
    from memrt._tracking.sites import Frame, Place, Site
    from memrt._workers.results import WorkersStats, WorkerStats
else:
    __getattr__ = import_at_first_use(
        __name__,
        {
            "memrt._arrays.alignment": "Alignment",
            "memrt._arrays.freezing": "Frozen",
            "memrt._faults.outcomes": "Exhaustion FailurePoint",
            "memrt._holders.naming": "Referrer",
            "memrt._holders.report": "Holder Holders NamedReference",
            "memrt._holders.retention": "Retained Retention",
            "memrt._interop.arrow_column": "Column",
            "memrt._leaks.growth": "Growth Trend",
            "memrt._leaks.leaks": "LeakGroup",
            "memrt._policy.limit": "Limit",
            "memrt._allocators.placement": "Placement PlacementAsked",
            "memrt._policy.scope": "Scope",
            "memrt._policy.scope_tree": "ScopeTree",
            "memrt._process.account": "MemoryPart ProcessMemory",
            "memrt._process.pressure": "Pressure PressureCallback",
            "memrt._stats.latency": "Latency",
            "memrt._stats.memory": "MemoryStats",
            "memrt._stats.moment": "Snapshot",
            "memrt._stats.references": "ReferenceCounts",
            "memrt._stats.snapshot": "AllocationStats Stats",
            "memrt._stats.threads": "ThreadStats",
            "memrt._support.options": "Option",
            "memrt._trace.reader": "Mark TracePolicy",
            "memrt._trace.recorder": "TraceStats",
            "memrt._trace.usage": "TraceUsage",
            "memrt._tracking.find": "Location",
            "memrt._tracking.hooks": "BlockEvent",
            "memrt._tracking.live": "LiveBuffer SiteUsage",
            "memrt._tracking.sites": "Frame Place Site",
            "memrt._workers.results": "WorkerStats WorkersStats",
        },
    )

__all__ = [
    "Alignment",
    "AllocationStats",
    "BlockEvent",
    "Buffer",
    "Column",
    "Exhaustion",
    "FailurePoint",
    "Frame",
    "Frozen",
    "Growth",
    "Holder",
    "Holders",
    "Latency",
    "LeakGroup",
    "Limit",
    "LiveBuffer",
    "Location",
    "Mark",
    "MemoryPart",
    "MemoryStats",
    "NamedReference",
    "Option",
    "Place",
    "Placement",
    "PlacementAsked",
    "Pressure",
    "PressureCallback",
    "ProcessMemory",
    "ReferenceCounts",
    "Referrer",
    "Retained",
    "Retention",
    "Scope",
    "ScopeTree",
    "Site",
    "SiteUsage",
    "Snapshot",
    "Stats",
    "Tensor",
    "ThreadStats",
    "TracePolicy",
    "TraceStats",
    "TraceUsage",
    "Trend",
    "WorkerStats",
    "WorkersStats",
]


def __dir__() -> list[str]:
    return list(__all__)
