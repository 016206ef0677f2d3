"""Types of results: statistics, buffers, holders, scopes, traces.

Functions of memrt return these objects. Programs need the names for annotations and
``isinstance``. Only :class:`Column` and :class:`Tensor` are made by users, to pass arrays to other
libraries.
"""

import numpy as np  # noqa: F401 - typing.get_type_hints resolves annotations of the types here

from memrt._arrays.alignment import Alignment
from memrt._holders.naming import Referrer
from memrt._holders.report import Holder, Holders, NamedReference
from memrt._holders.retention import Retained, Retention
from memrt._interop.arrow import Column
from memrt._leaks.growth import Growth, Trend
from memrt._leaks.leaks import LeakGroup
from memrt._memrt import Tensor
from memrt._policy.scope import Scope
from memrt._policy.scope_tree import ScopeTree
from memrt._stats.snapshot import AllocationStats, Stats
from memrt._stats.threads import ThreadStats
from memrt._support.installation import make_public
from memrt._support.options import Option
from memrt._trace.reader import Mark, TracePolicy
from memrt._trace.recorder import TraceStats
from memrt._trace.usage import TraceUsage
from memrt._tracking.live import LiveBuffer, SiteUsage
from memrt._tracking.sites import Frame, Place, Site

__all__ = [
    "Alignment",
    "AllocationStats",
    "Column",
    "Frame",
    "Growth",
    "Holder",
    "Holders",
    "LeakGroup",
    "LiveBuffer",
    "Mark",
    "NamedReference",
    "Option",
    "Place",
    "Referrer",
    "Retained",
    "Retention",
    "Scope",
    "ScopeTree",
    "Site",
    "SiteUsage",
    "Stats",
    "Tensor",
    "ThreadStats",
    "TracePolicy",
    "TraceStats",
    "TraceUsage",
    "Trend",
]


def __dir__() -> list[str]:
    return list(__all__)


make_public(globals())
