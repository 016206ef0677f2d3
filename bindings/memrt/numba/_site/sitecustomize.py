"""Install the memrt finder at the start of each Python under ``python -m memrt run --numba``.

The folder of this file is first on PYTHONPATH and hides another sitecustomize module. This module
therefore runs the hidden sitecustomize too.
"""

from __future__ import annotations

import os
import sys
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import module_from_spec, spec_from_file_location
from types import ModuleType

_HERE = os.path.dirname(os.path.abspath(__file__))


def _load(spec: ModuleSpec | None) -> ModuleType | None:
    if spec is None or spec.loader is None:
        return None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _finder() -> ModuleSpec | None:
    path = os.path.join(os.path.dirname(_HERE), "_finder.py")
    return spec_from_file_location("memrt.numba._finder", path)


def _other_sitecustomize() -> ModuleSpec | None:
    paths = [os.path.abspath(path or os.curdir) for path in sys.path]
    behind = sys.path[paths.index(_HERE) + 1 :] if _HERE in paths else sys.path
    return PathFinder.find_spec("sitecustomize", behind)


vars(_load(_finder()))["put_in_place"]()
if __name__ == "sitecustomize":
    _load(_other_sitecustomize())
