"""Measure a heap of many segments, in this process.

usage: python -I segments.py JOB, a JSON object:

  library   path of libmemrt, from the description of the subject
  native    path of the compiled segments.c
  segments  number of segments that are made and released; only headers of blocks are touched
  forks     true: a second thread forks during the release

Prints {"allocation": ns per segment, "release_unused": ns per segment, "fork": worst ns}.
"""

from __future__ import annotations

import ctypes
import json
import sys


class Figures(ctypes.Structure):
    """The figures of one run: figures_t in segments.c."""

    _fields_ = tuple((name, ctypes.c_double) for name in ("allocation", "release_unused", "fork"))


def measure(job: dict) -> dict[str, float]:
    native = ctypes.CDLL(job["native"])
    if native.segments_before() != 0:
        raise MemoryError("cannot register a fork handler")
    get_api = ctypes.CDLL(job["subject"]["library"]).memrt_get_api
    get_api.restype = ctypes.c_void_p
    table = ctypes.c_void_p(get_api(ctypes.c_uint32(1), None))
    figures = Figures()
    count = ctypes.c_size_t(job["segments"])
    if not native.segments_run(table, count, int(job["forks"]), ctypes.byref(figures)):
        raise MemoryError(f"no memory for {job['segments']} segments")
    return {name: getattr(figures, name) for name, _ in Figures._fields_}


if __name__ == "__main__":
    print(json.dumps(measure(json.loads(sys.argv[1]))))
