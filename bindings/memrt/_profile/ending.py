"""Examine live buffers at the end of a program: lost buffers, and the holders of the others."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable
from time import monotonic, perf_counter
from typing import Any

from memrt import _memrt
from memrt._holders.report import Holders
from memrt._holders.retention import Retention, retention
from memrt._leaks.by_holder import HolderGroup, by_holder
from memrt._leaks.leaks import LeakGroup, call_lines, group, held, unexpected
from memrt._leaks.survey import Survey
from memrt._profile.findings.contents import MOST_BUFFERS, Content, sample_contents
from memrt._profile.findings.finding import Evidence, Finding
from memrt._profile.findings.untouched import unused_bytes
from memrt._profile.findings.verdict import find_all
from memrt._profile.source import Excerpt, excerpts
from memrt._support.units import plural
from memrt._tracking.live import LiveBuffer, live

MOST_ROWS = 100_000
MOST_HOLDERS = 100
HOLDERS_SECONDS = 2.0
SHOWN_HOLDERS = 20
SHOWN_GROUPS = 100
MOST_RETAINED = 1000  # buffers that the findings examine
SHOWN_RETAINED = 100

COLUMNS = (
    *("id", "nbytes", "weight", "refcount", "name", "age", "thread", "policy", "kind"),
    *("address", "scope", "site"),
)


class Ending:
    """Live buffers, holders and retention at the end of a program.

    Failure: a part that cannot be determined stays empty, and `notes` gets a sentence.
    """

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.listed = perf_counter()
        self.buffers: list[LiveBuffer] = []
        self.total: list[tuple[int, int, int]] = []
        self._holders_of: dict[int, Holders] = {}  # by serial number of the buffer
        self.survey: Survey | None = None
        self.lost: list[LeakGroup] = []
        self.kept: list[LeakGroup] = []
        self.retained = Retention((), 0, 0)
        self.unused: dict[int, int] = {}
        self.contents: list[Content] = []
        self.findings: list[Finding] = []
        self.excerpts: list[Excerpt] = []

    def examine(self, collect: bool = True) -> None:
        """Collect garbage if `collect` is True, then list buffers, holders and contents."""
        self._attempt("live buffers", lambda: self._list_buffers(collect))
        self._attempt("all allocations", self._count_allocations)
        self._attempt("holders", self._find_holders)
        self._attempt("lost and held buffers", self._divide_buffers)
        self._attempt("buffers with small views", self._find_retention)
        self._attempt("unused pages", self._find_unused)
        self._attempt("contents of buffers", self._sample_contents)

    def find_problems(self, evidence: Evidence, complete: bool) -> None:
        """Fill `findings`: complete the evidence with the end of the program, and apply the rules.

        Parameters
        ----------
        evidence : Evidence
            Figures of the run.
        complete : bool
            Whether the program ran to its end.
        """
        evidence.buffers, evidence.lost, evidence.held = self.buffers, self.lost, self.kept
        evidence.survey, evidence.retained = self.survey, self.retained.buffers
        evidence.at_end, evidence.total = self.contents, self.total
        evidence.unused = self.unused if complete else {}

        def find() -> None:
            self.findings = find_all(evidence)

        self._attempt("findings", find)

    def read_source(self, sites: Iterable[int]) -> None:
        """Fill `excerpts`: the source text at the user's lines of sites, most important first."""

        def read() -> None:
            self.excerpts = excerpts(sites)

        self._attempt("source lines", read)

    def _attempt(self, part: str, find: Callable[[], None]) -> None:
        """Call `find`, and note an exception as an incomplete list of `part`."""
        try:
            find()
        except KeyboardInterrupt:
            self.notes.append(f"The list of {part} is incomplete: interrupted by Ctrl-C.")
        except Exception as error:
            self.notes.append(f"The list of {part} is incomplete: {type(error).__name__}.")

    def _list_buffers(self, collect: bool) -> None:
        if collect:
            gc.collect()
        self.listed = perf_counter()
        self.buffers = sorted(live(), key=lambda buffer: -buffer.nbytes)

    def _count_allocations(self) -> None:
        counts = enumerate(_memrt.site_allocations(), 1)
        self.total = [(number, count, size) for number, (count, size) in counts if count]
        self.total.sort(key=lambda row: -row[2])

    def _find_holders(self) -> None:
        """Find the holders of the largest buffers, for at most HOLDERS_SECONDS.

        The search for one buffer takes a pass over all Python objects.
        """
        until = monotonic() + HOLDERS_SECONDS
        wanted = self.buffers[:MOST_HOLDERS]
        for buffer in wanted:
            if monotonic() > until:
                break
            found = held(buffer)
            if found is not None:
                self._holders_of[buffer.id] = found
        if len(self._holders_of) < len(self.buffers):
            self.notes.append(
                f"Trees show the holders of the {plural(len(self._holders_of), 'largest buffer')} "
                f"of {len(self.buffers):,} live at the end."
            )

    def _divide_buffers(self) -> None:
        """Divide all unsuppressed buffers into lost and held ones, by one search.

        Failure: if the search raises an exception, both lists stay empty.
        """
        expected = unexpected(group(self.buffers))
        buffers = [buffer for each in expected for buffer in each.buffers]
        try:
            survey = self.survey = Survey(buffers)
        except BaseException:
            self.notes.append(
                f"{plural(len(buffers), 'buffer')} were not examined, and may be lost."
            )
            raise
        lost = [buffer for buffer in buffers if survey.is_lost(buffer)]
        ids = {buffer.id for buffer in lost}
        self.lost = group(lost)
        self.kept = group(each for each in buffers if each.id not in ids and survey.is_live(each))

    def _find_retention(self) -> None:
        self.retained = retention(limit=MOST_RETAINED)

    def _find_unused(self) -> None:
        """Find unused pages, before a sample of contents makes pages."""
        self.unused = unused_bytes(self.buffers)

    def _sample_contents(self) -> None:
        rows = ((each.nbytes, each.address, each.site_number) for each in self.buffers)
        self.contents = sample_contents(rows, MOST_BUFFERS)

    def groups(self, number: Callable[[int], int]) -> dict[str, list[dict[str, Any]]]:
        """Return holders and retention by site and kind of holder, in the format of a recording.

        `number` returns the number of a site in the recording. Without a survey, both are empty.
        """
        if self.survey is None:
            return {"holders": [], "retention": []}
        kept = {each.holders.address: each for each in self.retained.buffers}
        trees = {each.address: each for each in self._holders_of.values()}
        trees.update({address: each.holders for address, each in kept.items()})

        def plain(each: HolderGroup) -> dict[str, Any]:
            largest = next((b for b in each.buffers if b.address in trees), None)
            return {
                "site": number(each.buffers[0].site_number),
                "holder": each.holder,
                "buffers": len(each.buffers),
                "bytes": each.nbytes,
                "wasted": sum(kept[b.address].wasted for b in each.buffers if b.address in kept),
                "lines": [] if largest is None else trees[largest.address].tree(),
            }

        live_at_end = by_holder(self.buffers, self.survey)
        retained = by_holder((b for b in self.buffers if b.address in kept), self.survey)
        retained.sort(key=lambda group: -sum(kept[b.address].wasted for b in group.buffers))
        return {
            "holders": [plain(each) for each in live_at_end[:SHOWN_GROUPS]],
            "retention": [plain(each) for each in retained[:SHOWN_GROUPS]],
        }

    def to_dict(self) -> dict[str, Any]:
        """Return leaks, holders, retention and findings in the format of a recording."""
        buffers = [
            {"why": each.why, "wasted": each.wasted, "lines": str(each.holders).splitlines()}
            for each in self.retained.buffers[:SHOWN_RETAINED]
        ]
        found = self.retained
        return {
            "findings": [each.to_dict() for each in self.findings],
            "lost": [self._group_row(each) for each in self.lost[:SHOWN_GROUPS]],
            "held": [self._group_row(each) for each in self.kept[:SHOWN_GROUPS]],
            "holders": self._holder_trees(),
            "retention": {"count": found.count, "wasted": found.wasted, "buffers": buffers},
        }

    def _group_row(self, each: LeakGroup) -> dict[str, Any]:
        """Return a group as a dict: the calls, the kinds of holders, the largest's holder tree."""
        largest = each.buffers[0]
        lines = call_lines(each, None)
        lines += [] if self.survey is None else self.survey.lines(each.buffers, in_command=True)
        found = self._holders_of.get(largest.id)
        return {
            "bytes": each.nbytes,
            "buffers": len(each.buffers),
            "place": None if each.place is None else str(each.place),
            "lines": lines + ([] if found is None else found.tree()),
        }

    def _holder_trees(self) -> list[dict[str, Any]]:
        """Return the holder trees of the largest buffers, in the format of a recording."""
        shown = list(self._holders_of.values())[:SHOWN_HOLDERS]
        return [
            {
                "title": str(each).splitlines()[0],
                "bytes": each.nbytes,
                "lines": each.tree(),
            }
            for each in shown
        ]

    def rows(self, number: Callable[[int], int]) -> list[list[Any]]:
        """Return the largest live buffers as rows of a recording, with the fields COLUMNS.

        Parameters
        ----------
        number : Callable[[int], int]
            Maps the number of a site to its number in the recording.
        """
        return [
            [
                *(b.id, b.nbytes, round(b.weight, 3), b.refcount, b.name, round(b.age, 3)),
                *(b.thread, b.policy, b.kind, b.address, b.scope, number(b.site_number)),
            ]
            for b in self.buffers[:MOST_ROWS]
        ]
