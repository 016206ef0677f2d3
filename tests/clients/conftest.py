"""Fixtures of these tests. They run under ./dev suites clients."""

from __future__ import annotations

import gc

import memrt
import pytest


def _books() -> dict[str, int]:
    stats = memrt.stats()
    return {
        "meminfos": stats.mi_alloc - stats.mi_free,
        "live bytes": stats.live,
        "adopted bytes": stats.adopted,
    }


@pytest.fixture(autouse=True)
def balanced_books(request):
    """Verify that all exported memory came back and all imported memory was released."""
    gc.collect()
    before = _books()
    yield
    request.node.funcargs.clear()  # pytest keeps the values of other fixtures longer
    gc.collect()
    assert _books() == before
