"""Keep samples of live, cached and resident bytes over time, in bounded memory; and the parts of
the memory of the process.
"""

from __future__ import annotations

from contextvars import Context
from time import thread_time
from typing import Any, NamedTuple

from memrt._process.account import ProcessMemory, process_memory

MOST_SAMPLES = 4096
SCOPES_IN_A_SAMPLE = 16
MOST_ACCOUNTS = 256
FIRST_ACCOUNT = 0.1  # seconds until the first account of the memory of the process
ACCOUNTS_GAP = 0.1  # minimum pause between two accounts, in seconds
ACCOUNTS_PART = 0.01  # fraction of the program's run time that accounts may take
ACCOUNTS_GRACE = 0.15  # seconds that accounts may take in addition to ACCOUNTS_PART
MOST_COST = 0.1  # CPU time of an account that is the last one, in seconds

Scoped = list[tuple[str, int]]


class Sample(NamedTuple):
    """One reading."""

    t: float
    """Seconds since the start."""
    live: int
    """Bytes in use."""
    cached: int
    """Bytes kept for reuse."""
    resident: int
    """Resident bytes of the process, or -1 if unknown."""
    scoped: Scoped
    """Bytes in use by scope of the allocation, without child scopes. See largest()."""


class Timeline:
    """Samples in order of time, at most MOST_SAMPLES.

    A full timeline is halved: of each two neighbours, the sample with more live bytes stays. The
    highest sample is therefore never lost.
    """

    def __init__(self) -> None:
        self.samples: list[Sample] = []
        self.halvings = 0

    def add(self, sample: Sample) -> None:
        """Append a sample. Halve a full timeline first."""
        if len(self.samples) >= MOST_SAMPLES:
            self.samples = [
                max(self.samples[i : i + 2], key=lambda each: each.live)
                for i in range(0, len(self.samples), 2)
            ]
            self.halvings += 1
        self.samples.append(sample)

    def to_dict(self) -> dict[str, Any]:
        """Return the timeline in the format of a recording: a list per field, scopes by number."""
        numbers: dict[str, int] = {}
        scoped = [
            [[numbers.setdefault(path, len(numbers)), size] for path, size in each.scoped]
            for each in self.samples
        ]
        return {
            "t": [round(each.t, 6) for each in self.samples],
            "live": [each.live for each in self.samples],
            "cached": [each.cached for each in self.samples],
            "resident": [each.resident for each in self.samples],
            "scopes": list(numbers),
            "scoped": scoped,
            "halvings": self.halvings,
        }


class ProcessTimeline:
    """Parts of the resident memory of the process over time, at most MOST_ACCOUNTS accounts.

    A full timeline is halved: of each two neighbours, the account with more resident bytes stays.
    """

    def __init__(self) -> None:
        self.spent = 0.0
        """CPU time of all accounts, in seconds."""
        self._accounts: list[tuple[float, dict[str, int]]] = []
        self._next = FIRST_ACCOUNT
        self._gap = ACCOUNTS_GAP
        self._cost = 0.0  # seconds of the last account

    def is_due(self, t: float) -> bool:
        """Return whether the next account may be read at `t` seconds since the start."""
        is_affordable = self.spent + self._cost <= ACCOUNTS_PART * t + ACCOUNTS_GRACE
        return t >= self._next and is_affordable

    def read(self, t: float) -> None:
        """Read an account, and decide when the next one is due: never after an expensive one.

        In an empty context, NumPy allocates from its own allocator.
        """
        begin = thread_time()
        try:
            self.add(t, Context().run(process_memory))
        except OSError:  # for example in a sandbox
            self._next = float("inf")
            return
        self._cost = thread_time() - begin
        self.spent += self._cost
        self._next = t + self._gap if self._cost < MOST_COST else float("inf")

    def add(self, t: float, memory: ProcessMemory) -> None:
        """Append an account of `t` seconds since the start. Halve a full timeline first.

        Accounts of a later time are removed: a reading may begin after the caller took the time.
        """
        while self._accounts and self._accounts[-1][0] > t:
            self._accounts.pop()
        if len(self._accounts) >= MOST_ACCOUNTS:
            pairs = zip(self._accounts[::2], self._accounts[1::2], strict=True)
            self._accounts = [max(pair, key=lambda each: sum(each[1].values())) for pair in pairs]
            self._gap *= 2
        parts = {name: part.resident or 0 for name, part in memory.parts().items()}
        self._accounts.append((t, parts))

    def to_dict(self) -> dict[str, Any]:
        """Return the timeline in the format of a recording."""
        accounts = list(self._accounts)  # a thread may add accounts meanwhile
        names = list(accounts[0][1]) if accounts else []
        return {
            "t": [round(t, 6) for t, _ in accounts],
            "parts": [
                {"name": name, "resident": [parts[name] for _, parts in accounts]} for name in names
            ],
        }


def largest(scoped: Scoped) -> Scoped:
    """Return the SCOPES_IN_A_SAMPLE largest scopes, and the sum of the rest under an empty name.

    Scopes with no live bytes are left out.
    """
    found = sorted((each for each in scoped if each[1] > 0), key=lambda each: -each[1])
    rest = sum(size for _, size in found[SCOPES_IN_A_SAMPLE:])
    return [*found[:SCOPES_IN_A_SAMPLE], *([("", rest)] if rest else [])]
