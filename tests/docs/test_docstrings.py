"""Every public object has a docstring in NumPy's style, with examples that run."""

from __future__ import annotations

import gc
import importlib

import memrt
import pytest
from docstrings import Documented, documented, run_examples
from numpydoc.validate import ERROR_MSGS, validate

# Faults of numpydoc that the project does not count: the place of the quotes, a missing extended
# summary, a missing See Also.
ACCEPTED = {"GL01", "GL02", "ES01", "SA01"}
CHECKED = set(ERROR_MSGS) - ACCEPTED

EVERY = documented()
HERE = [thing for thing in EVERY if thing.has_examples and not thing.needs_cuda]


def faults(thing: Documented) -> list[str]:
    """Return the faults of a docstring by the rules of numpydoc."""
    return [
        f"{code}: {message}"
        for code, message in validate(thing.name)["errors"]
        if code in CHECKED
        and not (code == "EX01" and thing.is_member)
        and not (code == "PR01" and not thing.is_built_by_users)
    ]


def live_blocks() -> int:
    gc.collect()
    stats = memrt.stats()
    return stats.alloc - stats.free


@pytest.mark.parametrize("thing", EVERY, ids=lambda thing: thing.name)
def test_docstring_has_numpy_style(thing):
    assert faults(thing) == []


@pytest.mark.parametrize("thing", HERE, ids=lambda thing: thing.name)
def test_examples_of_docstring_run_and_free_their_memory(thing):
    before = live_blocks()
    assert run_examples(thing) > 0
    assert live_blocks() == before
    assert memrt.debug.enabled() is None


def test_attributes_of_extension_types_are_checked():
    names = {thing.name for thing in EVERY}
    assert {"memrt.MemInfo.nbytes", "memrt.MemInfo.__dlpack__", "memrt.types.Tensor.shape"} <= names


HALF = '''
def half(number):
    """
    Return half of a number.

    Parameters
    ----------
    amount : float
        Number to halve.

    Examples
    --------
    >>> 3 / 2
    2
    """
    return number / 2
'''


def test_wrong_docstring_is_found(tmp_path, monkeypatch):
    (tmp_path / "halves.py").write_text(HALF)
    monkeypatch.syspath_prepend(tmp_path)
    thing = Documented("halves.half", importlib.import_module("halves").half)
    assert {fault[:4] for fault in faults(thing)} == {"PR01", "PR02", "RT01"}
    with pytest.raises(AssertionError, match=r"Expected:\n    2"):
        run_examples(thing)
