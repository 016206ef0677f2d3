"""Start memrt in each Python process below ``memrt run --children`` or ``memrt.workers.share``.

The folder of this module stands first on PYTHONPATH. The module therefore also runs the next
sitecustomize on the path. Failure: any exception, for example where memrt is not installed, is
suppressed, and the program runs without memrt. Any Python 3 can parse this file.
"""

import contextlib
import os
import sys
from importlib.machinery import PathFinder
from importlib.util import module_from_spec

_HERE = os.path.dirname(os.path.abspath(__file__))


def _record() -> None:
    if "_MEMRT_FAMILY" in os.environ:
        from memrt.commands.programs.continuation import record_new_interpreter

        record_new_interpreter()


def _join() -> None:
    if "_MEMRT_WORKERS" in os.environ:
        from memrt._workers.member import join_at_start

        join_at_start()


def _run_the_next() -> None:
    paths = [os.path.abspath(path or os.curdir) for path in sys.path]
    behind = sys.path[paths.index(_HERE) + 1 :] if _HERE in paths else []
    spec = PathFinder.find_spec("sitecustomize", behind)
    if spec is not None and spec.loader is not None:
        spec.loader.exec_module(module_from_spec(spec))


for _start in (_record, _join):
    with contextlib.suppress(Exception):
        _start()
if __name__ == "sitecustomize":
    _run_the_next()
