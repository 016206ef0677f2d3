"""Recording of a worker process for the page on a cluster."""

from __future__ import annotations

import asyncio
from contextvars import Context
from typing import Any

from memrt import _memrt
from memrt._dask.tasks import PROCESS
from memrt._profile.dump import document_now
from memrt._profile.recorder import Recorder
from memrt._profile.recording import Document, dumps
from memrt._tracking.live import tracking

SAMPLE = "512K"
"""Mean bytes per allocation that is tracked."""

_recorder: Recorder | None = None
_tracking: tracking | None = None


def start_recording() -> None:
    """Record the process, with sampled allocation sites. A second call has no effect."""
    global _recorder, _tracking
    if _recorder is None:
        if not _memrt.tracking_enabled():
            _tracking = tracking(sample=SAMPLE)
            _tracking.__enter__()
        _recorder = Recorder({"Recorded": "since memrt.dask.install"}, tracked=True)
        _recorder.start()


def stop_recording() -> None:
    """End the recording of the process, if there is a recording."""
    global _recorder, _tracking
    if _recorder is not None:
        _recorder.stop()
    if _tracking is not None:
        _tracking.__exit__(None, None, None)
    _recorder = _tracking = None


async def read_recording(dask_worker: Any) -> tuple[str, bytes]:
    """Return the process and its recording, for a worker of the process."""
    loop = asyncio.get_running_loop()
    return PROCESS, await loop.run_in_executor(None, _encoded, str(dask_worker.address))


def _encoded(address: str) -> bytes:
    # In an empty context, arrays of the recorder need no memory of a policy that has no room.
    document: Document = Context().run(_document)
    return dumps([{**document, "program": ["dask worker", address]}]).encode("ascii")


def _document() -> Document:
    if _recorder is None:
        return document_now("for memrt.dask.report; install with record=True records more")
    return _recorder.still_running("still running")
