"""Types of results: statistics, buffers, holders, scopes, traces.

Functions of memrt return these objects. Programs need the names for annotations and
``isinstance``. Only :class:`Column` and :class:`Tensor` are made by users, to pass arrays to other
libraries.
"""

import numpy as np  # noqa: F401 - typing.get_type_hints resolves annotations of the types here

from memrt._alignment import Alignment
from memrt._arrow import Column
from memrt._growth import Growth, Trend
from memrt._holders import Holder, Holders, NamedReference
from memrt._installation import make_public
from memrt._leaks import LeakGroup
from memrt._live import LiveBuffer, SiteUsage
from memrt._memrt import Tensor
from memrt._naming import Referrer
from memrt._options import Option
from memrt._retention import Retained, Retention
from memrt._scopes import Scope, ScopeTree
from memrt._sites import Frame, Place, Site
from memrt._stats import AllocationStats, Stats
from memrt._trace import Mark, TracePolicy, TraceUsage
from memrt._tracing import TraceStats

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
    "TracePolicy",
    "TraceStats",
    "TraceUsage",
    "Trend",
]


def __dir__() -> list[str]:
    return list(__all__)


make_public(globals())
