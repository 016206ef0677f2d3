"""Start coverage in each Python process of a coverage run: a .pth file imports this module.

coverage.py starts if COVERAGE_PROCESS_START has the name of its settings. If the variable is set at
all, os._exit() also writes gcov counters.
"""

import contextlib
import ctypes
import os
import sys

if "COVERAGE_PROCESS_START" in os.environ:
    _leave = os._exit

    def _dump_and_leave(status: int) -> None:
        extension = sys.modules.get("memrt._memrt")
        if extension is not None:
            with contextlib.suppress(Exception):
                ctypes.CDLL(extension.__file__).memrt_coverage_dump()
        _leave(status)

    os._exit = _dump_and_leave  # type: ignore[assignment]

    import resource

    _limit = resource.setrlimit

    def _limit_without_counters(which: int, limits: tuple[int, int]) -> None:
        """Set a limit. Under a file size limit, gcov writes no counters: no truncated files."""
        if which == resource.RLIMIT_FSIZE:
            os.environ["GCOV_PREFIX"] = "/dev/null/none"
        _limit(which, limits)

    resource.setrlimit = _limit_without_counters
    if os.environ["COVERAGE_PROCESS_START"]:
        with contextlib.suppress(Exception):
            import coverage

            coverage.process_startup()
