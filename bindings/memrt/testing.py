"""Inject allocation failures into tests of programs that use memrt."""

from typing import TYPE_CHECKING

from memrt._support.public import import_at_first_use

if TYPE_CHECKING:
    from memrt._faults.exhaust import exhaust
    from memrt._faults.plan import fail_allocations
else:
    __getattr__ = import_at_first_use(
        __name__,
        {
            "memrt._faults.exhaust": "exhaust",
            "memrt._faults.plan": "fail_allocations",
        },
    )

__all__ = ["exhaust", "fail_allocations"]
