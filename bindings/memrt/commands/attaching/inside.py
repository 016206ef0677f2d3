"""Inside the process that memrt attaches to: start and end counting, tracking and recording.

The injected code calls perform() on the main thread.
"""

from __future__ import annotations

import atexit
import os
import threading
from pathlib import Path
from typing import Any

import memrt
from memrt import _memrt
from memrt._profile.recorder import Recorder
from memrt._profile.recording import dumps


class _Attachment:
    """Changes that a command made to this process."""

    def __init__(self) -> None:
        self.enabled = self.shared = False
        self.tracking: memrt.debug.tracking | None = None
        self.recording: _Recording | None = None

    def attach(self, *, sample: str | None, track: bool) -> None:
        """Put NumPy on memrt, share statistics, and track if requested."""
        options = {option.name: option.value for option in memrt.debug.options()}
        if options["MEMRT_SHARE"] == "0":
            memrt.set_option("share", True)
            self.shared = True
        self.enabled |= memrt.debug.enabled() is None
        memrt.enable()
        if track and self.tracking is None:
            self.tracking = memrt.debug.tracking(sample=sample)
            self.tracking.__enter__()

    def end_recording(self) -> None:
        """End the recording, and undo the changes that were made for the recording alone."""
        recording, self.recording = self.recording, None
        if recording is not None:
            recording.end()
            if not recording.was_attached:
                self.detach()
            elif recording.has_tracking and self.tracking is not None:
                self.tracking.__exit__()
                self.tracking = None

    def detach(self) -> None:
        """Undo the changes. Arrays stay valid, and arrays on memrt stay on memrt."""
        if self.recording is not None:
            self.recording.end()
            self.recording = None
        if self.tracking is not None:
            self.tracking.__exit__()
            self.tracking = None
        if self.enabled:
            memrt.disable()
        if self.shared:
            memrt.set_option("share", False)
        self.enabled = self.shared = False


class _Recording:
    """Recording of this process, written to a file after some seconds or at exit."""

    was_attached = has_tracking = False
    """State before the recording: attached by an earlier command; tracking only for this."""

    def __init__(self, path: Path, seconds: float, settings: dict[str, str]) -> None:
        self._path, self._seconds = path, seconds
        self._recorder: Recorder | None = Recorder(settings, tracked=True)
        self._lock, self._ended = threading.Lock(), threading.Event()
        self._recorder.start()
        self._thread = threading.Thread(target=self._wait, name="memrt attach", daemon=True)
        self._thread.start()
        atexit.register(self.end)

    def _wait(self) -> None:
        self._ended.wait(self._seconds)
        self._write()

    def end(self) -> None:
        """End the recording now, and write the file."""
        self._ended.set()
        self._write()

    def _write(self) -> None:
        with self._lock:
            recorder, self._recorder = self._recorder, None
            if recorder is None:
                return
            recorder.stop()
            document = recorder.finish(f"recorded for up to {self._seconds:g} s by memrt attach")
            part = self._path.with_suffix(".part")
            if self._path.parent.is_dir():  # the command may have been interrupted
                part.write_bytes(dumps([document]).encode("ascii"))
                os.replace(part, self._path)
        atexit.unregister(self.end)


_MOST_SITES = 10


def _sites() -> dict[str, Any]:
    """Return the lines with most live bytes, and whether allocations are tracked now."""
    found = [usage for usage in memrt.debug.sites() if usage.bytes]
    return {
        "tracked": _memrt.tracking_get()[0],
        "sites": [
            [str(usage.place or "unknown source line"), round(usage.bytes), round(usage.blocks)]
            for usage in found[:_MOST_SITES]
        ],
        "more": len(found[_MOST_SITES:]),
    }


_attachment = _Attachment()


def perform(request: dict[str, Any], folder: str) -> dict[str, Any]:
    """Perform a request of the command, and return the answer.

    Parameters
    ----------
    request : dict
        ``action``: "attach" with ``track``, ``sample`` and ``seconds``, "end recording", "detach",
        "sites".
    folder : str
        Folder for the recording.
    """
    if request["action"] == "sites":
        return _sites()
    was = _attachment.enabled or _attachment.shared or _attachment.tracking is not None
    if request["action"] == "detach":
        if not was:
            return {"error": "is not attached"}
        _attachment.detach()
        return {}
    if request["action"] == "end recording":
        _attachment.end_recording()
        return {}
    seconds = request["seconds"]
    if seconds is not None and _attachment.recording is not None:
        return {"error": "is being recorded by another command: wait, or use --detach"}
    tracked = _attachment.tracking is not None
    try:
        _attachment.attach(sample=request["sample"], track=request["track"] or seconds is not None)
        if seconds is not None:
            path, settings = Path(folder, "recording"), {"Attached": f"{seconds:g} s"}
            _attachment.recording = _Recording(path, seconds, settings)
            _attachment.recording.was_attached = was
            _attachment.recording.has_tracking = not tracked
    except BaseException:
        if not was:
            _attachment.detach()
        raise
    threads = len(threading.enumerate()) - (2 if seconds is not None else 1)
    return {"other_threads": max(threads, 0)}
