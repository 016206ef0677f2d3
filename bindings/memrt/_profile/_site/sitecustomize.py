"""Record each Python process that starts below ``python -m memrt run --children``.

The folder of this module stands first on PYTHONPATH. The module therefore also runs the next
sitecustomize on the path. Failure: any exception, for example where memrt is not installed, is
suppressed, and the program runs unrecorded. Any Python 3 can parse this file.
"""

import contextlib
import os
import sys
from importlib.machinery import PathFinder
from importlib.util import module_from_spec

_HERE = os.path.dirname(os.path.abspath(__file__))


def _record() -> None:
    from memrt._profile.member import record_this

    record_this()


def _run_the_next() -> None:
    paths = [os.path.abspath(path or os.curdir) for path in sys.path]
    behind = sys.path[paths.index(_HERE) + 1 :] if _HERE in paths else []
    spec = PathFinder.find_spec("sitecustomize", behind)
    if spec is not None and spec.loader is not None:
        spec.loader.exec_module(module_from_spec(spec))


with contextlib.suppress(Exception):
    _record()
if __name__ == "sitecustomize":
    _run_the_next()
