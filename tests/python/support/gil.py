"""State of the GIL, which the search for holders needs."""

import sys

import pytest

GIL_IS_OFF = not getattr(sys, "_is_gil_enabled", lambda: True)()

needs_gil = pytest.mark.skipif(GIL_IS_OFF, reason="the search for holders needs the GIL")
needs_no_gil = pytest.mark.skipif(not GIL_IS_OFF, reason="the GIL is on")
