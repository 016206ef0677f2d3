"""Attributes that are computed on first access."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    computed = cached_property
else:

    class computed(cached_property):  # noqa: N801 - a decorator
        """cached_property without the lock that versions before Python 3.12 take.

        A child forked while a thread computes could never acquire the lock. If two threads compute
        at once, both get the result of the first thread.
        """

        def __get__(self, instance, owner=None):
            if instance is None:
                return self
            return vars(instance).setdefault(self.attrname, self.func(instance))
