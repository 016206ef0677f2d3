"""Holders of the largest buffers, for the text of an out-of-memory error."""

from __future__ import annotations

import heapq

from memrt._leaks.survey import Survey
from memrt._support.units import human_bytes
from memrt._tracking.live import LiveBuffer, live

_SHOWN = 3


def _size(buffer: LiveBuffer) -> int:
    return buffer.nbytes


def describe_holders() -> str:
    """Return lines with the largest tracked buffers and their holders; empty without buffers.

    The search for holders visits all objects of the collector once, and can be interrupted.
    """
    largest = heapq.nlargest(_SHOWN, live(), key=_size)
    if not largest:
        return ""
    try:
        survey = Survey(largest)
    except RuntimeError as error:
        return f"\nholders are not listed: {error}"
    lines = [
        f"  {human_bytes(buffer.nbytes)} held by {survey.describe(buffer)}"
        for buffer in largest
        if survey.is_live(buffer)
    ]
    return "\n".join(["\nholders of the largest tracked buffers:", *lines])
