"""Replace Numba's runtime by memrt, so that compiled code and NumPy share one account.

The account includes arrays, lists, dicts and strings of compiled code. Call :func:`install` before
the first ``import numba``::

    import memrt.numba
    memrt.numba.install()

To run an unchanged program, use ``python -m memrt run --numba script.py``. From then on memrt is
the Numba runtime of this process. Allocations of Numba count in :func:`memrt.stats` and are listed
by :func:`memrt.debug.live`. :func:`memrt.meminfo` finds the MemInfo of an array from a jitted
function. The installed files of Numba do not change.
"""

from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from memrt._support.public import import_at_first_use
from memrt.numba import _containers, _contract, _finder

__all__ = ["install", "installed", "scratch", "table_nbytes", "tested_versions"]

tested_versions = _contract.tested_versions
table_nbytes = _containers.table_nbytes

if TYPE_CHECKING:
    from memrt.numba._scratch import scratch
else:
    __getattr__ = import_at_first_use(__name__, {"memrt.numba._scratch": "scratch"})


def install(children: bool = False, refprune: bool = False) -> None:
    """Replace Numba's runtime by memrt in this process.

    A second call only adds what its parameters request.

    Parameters
    ----------
    children : bool, default False
        Whether to replace the runtime also in Python processes started by this process, through a
        folder at the front of their PYTHONPATH. Not reached are interpreters that ignore PYTHONPATH
        or the site module (``-I``, ``-E``, ``-S``), and programs that set PYTHONPATH themselves.
    refprune : bool, default False
        Whether :mod:`memrt.numba.refprune` removes refcount calls from compiled code of this
        process, in place of the pass that Numba uses.

    Raises
    ------
    RuntimeError
        Numba is imported already, so compiled code is bound to Numba's own runtime.
    ImportError
        Numba is missing, or differs in an interface that memrt relies on.

    Warns
    -----
    RuntimeWarning
        The version of Numba is outside the tested range.

    Examples
    --------
    >>> import memrt.numba
    >>> memrt.numba.install()  # doctest: +SKIP
    >>> import numba  # doctest: +SKIP
    """
    if not installed():
        _install_here()
    if children:
        _reach_children()
    if refprune:
        importlib.import_module("memrt.numba.refprune.hook").put_in_place()


def _install_here() -> None:
    if "numba" in sys.modules:
        raise RuntimeError(
            "Numba is already imported and bound to the runtime of Numba: call "
            "memrt.numba.install() before the first 'import numba', or start the program with "
            "'python -m memrt run --numba'"
        )
    _contract.verify()
    _finder.put_in_place()


def _reach_children() -> None:
    site = str(Path(__file__).with_name("_site"))
    paths = os.environ.get("PYTHONPATH", "")
    if site not in paths.split(os.pathsep):  # keep empty entries: they mean the current folder
        os.environ["PYTHONPATH"] = f"{site}{os.pathsep}{paths}" if paths else site


def installed() -> bool:
    """Return whether Numba in this process runs on memrt, or will once Numba is imported.

    Returns
    -------
    bool
        True after :func:`install`.

    Examples
    --------
    >>> import memrt.numba
    >>> memrt.numba.installed()
    False
    """
    module = sys.modules.get(_finder.TARGET)
    if module is not None:
        return hasattr(module, "memrt_version")
    return _finder.is_in_place()
