"""What these tests share. They run where the libraries are installed (./dev clients)."""

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
    """All memory that was handed out came back, and what was taken went back."""
    gc.collect()
    before = _books()
    yield
    request.node.funcargs.clear()  # pytest keeps what other fixtures gave a little longer
    gc.collect()
    assert _books() == before
