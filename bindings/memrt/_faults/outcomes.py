"""Outcomes of a function under memory failure."""

from __future__ import annotations

from dataclasses import dataclass

from memrt._support.public import public
from memrt._support.units import human_bytes, plural


@public("memrt.types")
@dataclass(frozen=True, slots=True)
class FailurePoint:
    """Outcome of a function after a failed request for memory.

    Examples
    --------
    >>> import memrt
    >>> import numpy as np
    >>> from memrt.testing import exhaust
    >>> exhaust(lambda: np.empty(1000)).outcomes[0].kind
    'block'
    """

    point: int
    """Number of the request in the call, from 1 on."""
    kind: str
    """Kind of the request, as in :class:`memrt.testing.fail_allocations`."""
    nbytes: int
    """Bytes of data of the request; 0 for a record."""
    error: str | None
    """Type and first line of the exception; None: the function returned."""
    place: str | None
    """File and line that raised the exception, or None."""
    result: str | None
    """Short repr of the result; None: the function raised an exception."""
    leaked: int
    """Blocks that the call left live."""
    leaked_bytes: int
    """Bytes by which the call raised the live bytes."""
    is_expected: bool
    """Whether the function returned or raised an expected exception."""

    @property
    def is_problem(self) -> bool:
        """Whether the call left blocks or raised an unexpected exception."""
        return self.leaked > 0 or not self.is_expected

    @property
    def _request(self) -> str:
        return self.kind if self.kind == "record" else f"{self.kind} of {human_bytes(self.nbytes)}"

    @property
    def _end(self) -> str:
        return "returned" if self.error is None else f"raised {self.error.partition(':')[0]}"

    @property
    def _outcome(self) -> str:
        text = f"returned {self.result}" if self.error is None else self.error
        text += f" at {self.place}" if self.place is not None else ""
        if not self.is_expected:
            text = f"unexpected {text}"
        if self.leaked > 0:
            text += f", left {plural(self.leaked, 'block')} of {human_bytes(self.leaked_bytes)}"
        return text

    def __repr__(self) -> str:
        return f"<failure point {self.point}, {self._request}: {self._outcome}>"


@public("memrt.types")
@dataclass(frozen=True, slots=True, repr=False)
class Exhaustion:
    """Result of :func:`memrt.testing.exhaust`. ``print`` shows a line for each failure point.

    Examples
    --------
    >>> import memrt
    >>> import numpy as np
    >>> print(memrt.testing.exhaust(lambda: np.empty(1000), kind="block").summary)
    1 failure point: 1 raised MemoryError
    """

    name: str
    """Name of the function."""
    outcomes: tuple[FailurePoint, ...]
    """Outcome of each failure point, in the order of the requests."""
    leaked: int
    """Blocks that the last call, without a failure, left live."""

    @property
    def problems(self) -> tuple[FailurePoint, ...]:
        """Outcomes with blocks that stay live, or with an unexpected exception."""
        return tuple(outcome for outcome in self.outcomes if outcome.is_problem)

    @property
    def summary(self) -> str:
        """Number of failure points, and of each kind of outcome, in one line."""
        ends = [outcome._end for outcome in self.outcomes]
        parts = [f"{ends.count(end):,} {end}" for end in sorted(set(ends))]
        left = sum(outcome.leaked > 0 for outcome in self.outcomes)
        parts += [f"{left:,} left blocks"] if left else []
        text = plural(len(self.outcomes), "failure point")
        text += f": {', '.join(parts)}" if parts else ""
        if self.leaked > 0:
            text += f"; {plural(self.leaked, 'block')} left also without a failure"
        return text

    def __repr__(self) -> str:
        return f"<exhaustion of {self.name}, {self.summary}>"

    def __str__(self) -> str:
        mark = {False: " ", True: "!"}
        rows = [
            f"{mark[each.is_problem]} {each.point:>4}  {each._request:<20}  {each._outcome}"
            for each in self.outcomes
        ]
        return "\n".join([f"{self.name}: {self.summary}", *rows])
