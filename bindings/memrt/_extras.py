"""Libraries that memrt does without, but for what is made of them."""

from __future__ import annotations

from importlib.util import find_spec


def needs(library: str, what: str) -> None:
    """Raise ImportError, with what to do, where `library` of the extra ``report`` is missing."""
    if find_spec(library) is None:
        raise ImportError(f"{what} needs {library}: pip install 'memrt[report]'", name=library)
