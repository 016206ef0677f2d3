"""Numba on memrt: arrays, lists, dicts and strings of compiled code, in one account with NumPy's.

Before the first ``import numba``::

    import memrt.numba
    memrt.numba.install()

or, for a program as it is, ``python -m memrt run --numba script.py``. From then on Numba's runtime
is memrt in this process: its allocations count in :func:`memrt.stats`, show in :func:`memrt.live`,
and :func:`memrt.meminfo` finds the MemInfo behind an array that a jitted function returns. Nothing
in the installation of Numba is changed.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from memrt.numba import _contract, _finder

__all__ = ["install", "installed", "tested_versions"]

tested_versions = _contract.tested_versions


def install(children: bool = False) -> None:
    """Put memrt in the place of Numba's runtime, for this process.

    Does nothing when that is done already. A version of Numba outside the tested range brings a
    RuntimeWarning.

    Args:
        children: for the Pythons that this process starts as well, by a folder at the front of
            their PYTHONPATH. Interpreters that ignore it (``-I``, ``-E``, ``-S``) and programs that
            set a PYTHONPATH of their own are out of reach.

    Raises:
        RuntimeError: when Numba is imported already: its compiled code is bound to its own runtime.
        ImportError: when Numba is missing, or its contract is not the one that memrt knows.
    """
    if not installed():
        _install_here()
    if children:
        _reach_children()


def _install_here() -> None:
    if "numba" in sys.modules:
        raise RuntimeError(
            "Numba is imported already and bound to its own runtime: call memrt.numba.install() "
            "before the first 'import numba', or start the program with "
            "'python -m memrt run --numba'"
        )
    _contract.verify()
    _finder.put_in_place()


def _reach_children() -> None:
    site = str(Path(__file__).with_name("_site"))
    paths = os.environ.get("PYTHONPATH", "")
    if site not in paths.split(os.pathsep):  # an empty entry among others is the current folder
        os.environ["PYTHONPATH"] = f"{site}{os.pathsep}{paths}" if paths else site


def installed() -> bool:
    """Whether Numba runs on memrt in this process, or will as soon as it is imported."""
    module = sys.modules.get(_finder.TARGET)
    if module is not None:
        return hasattr(module, "memrt_version")
    return _finder.is_in_place()
