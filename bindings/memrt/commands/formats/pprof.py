"""Write event traces and recordings as gzipped profile.proto: pprof, Pyroscope, Parca.

Memory in use is the memory at the peak.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import IO

import numpy as np

from memrt._profile.recording import Document
from memrt._trace.reader import Trace
from memrt._tracking.pprof import UNKNOWN, Call, Profile, calls_of

_MOMENT = "at the moment with the most live bytes"


def write(trace: Trace, file: IO[bytes]) -> None:
    profile = Profile(_MOMENT)
    events = trace._by_buffer
    sites = events.allocation_values("site").astype(np.uint64)
    policies = events.allocation_values("policy").astype(np.uint64)
    pairs, keys = np.unique(sites << np.uint64(32) | policies, return_inverse=True)
    keys, peak = keys.reshape(-1), trace.peak_event + 1
    sums = [
        np.bincount(keys[:end], values[:end], len(pairs)).round().astype(np.int64)
        for values, end in (
            (events.changes, peak),
            (events.count_changes, peak),
            (np.maximum(events.changes, 0), None),
            (np.maximum(events.count_changes, 0), None),
        )
    ]
    for pair, values in zip(pairs.tolist(), np.transpose(sums).clip(0).tolist(), strict=True):
        if any(values):
            known = trace.policies.get(pair & (1 << 32) - 1)
            labels = {} if known is None else {"scope": known.scope, "policy": known.name}
            profile.add(_calls_of_trace(trace, pair >> 32), labels, values)
    name = os.path.basename(os.fsdecode(trace.path))
    file.write(profile.encoded(name, trace.began.timestamp(), trace.duration))


def _calls_of_trace(trace: Trace, site: int) -> list[Call]:
    known = trace.sites.get(site)
    return calls_of(() if known is None else known.frames)


def write_recording(documents: Sequence[Document], file: IO[bytes]) -> None:
    """Write a profile of all processes of a recording, each with the label `process`."""
    profile = Profile(_MOMENT)
    for document in documents:
        process = str(document["pid"]) if len(documents) > 1 else None
        calls = _calls_of_recording(document)
        for site, scope, count, nbytes in document["highest"]["rows"]:
            labels = {"scope": scope, "process": process}
            profile.add(calls.get(site, [UNKNOWN]), labels, (nbytes, count, 0, 0))
        for site, count, nbytes in document["total"]:
            profile.add(calls.get(site, [UNKNOWN]), {"process": process}, (0, 0, nbytes, count))
    first = documents[0]
    program = os.path.basename(first["program"][0]) if first["program"] else ""
    file.write(profile.encoded(program, first["started"], first["seconds"]))


_PYTHON_CALL = re.compile(r"(.*?) at (.*):(\d+)", re.DOTALL)
_NATIVE_CALL = re.compile(r"(.*)\+0x[0-9a-f]+ in (.*)", re.DOTALL)


def _calls_of_recording(document: Document) -> dict[int, list[Call]]:
    """Return the calls of each site, innermost call first."""
    calls = [_parsed(text) for text in document["frames"]]
    return {
        site: [calls[number] for number in reversed(numbers)] or [UNKNOWN]
        for site, _, numbers in document["sites"]
    }


def _parsed(text: str) -> Call:
    """Return the parts of a call that a recording has as text."""
    found = _PYTHON_CALL.fullmatch(text)
    if found:
        return Call(found[1], found[2], int(found[3]))
    found = _NATIVE_CALL.fullmatch(text)
    return Call(found[1] or text, found[2], 0) if found else Call(text, "", 0)
