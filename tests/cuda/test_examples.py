"""The examples in the docstrings of CUDA functions run."""

from __future__ import annotations

import pytest
from docstrings import documented, run_examples

EXAMPLES = [thing for thing in documented() if thing.has_examples and thing.needs_cuda]


@pytest.mark.parametrize("thing", EXAMPLES, ids=lambda thing: thing.name)
def test_examples_of_docstring_run(thing):
    assert run_examples(thing) > 0
