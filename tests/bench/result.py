"""Results of a benchmark part: groups of cases, with one figure per round and subject."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np

NUMBERS = re.compile(r"\[\s*(-?[\d.][^\[\]\"]*?)\s*\]")


def one_line(numbers: re.Match[str]) -> str:
    return f"[{' '.join(numbers[1].split())}]"


@dataclass(frozen=True)
class Spread:
    """Median and quartiles of one figure over the rounds."""

    middle: float
    low: float
    high: float

    @classmethod
    def of(cls, figures) -> Spread:
        low, middle, high = np.percentile(figures, [25, 50, 75])
        return cls(float(middle), float(low), float(high))


@dataclass
class Case:
    """One piece of work, with the figures of each subject by round."""

    name: str
    figures: dict[str, list[float]] = field(default_factory=dict)

    def add(self, subject: str, figure: float) -> None:
        self.figures.setdefault(subject, []).append(figure)

    def has(self, *subjects: str) -> bool:
        return all(subject in self.figures for subject in subjects)

    def ratios(self, subject: str, *against: str) -> np.ndarray:
        """Return, for each round, the figure of `subject` divided by the minimum of `against`."""
        own = np.array(self.figures[subject])
        if not against:
            return own
        return own / np.min([self.figures[name] for name in against], axis=0)


@dataclass
class Group:
    """Cases of one table, with the same subjects and unit."""

    title: str
    about: str
    unit: str  # for example "ns", "KiB", "faults" or "share"
    reference: str | None  # the subject used as divisor; None: no division
    cases: list[Case] = field(default_factory=list)

    def case(self, name: str) -> Case:
        """Return the case named `name`. Create the case if it does not exist."""
        for case in self.cases:
            if case.name == name:
                return case
        self.cases.append(Case(name))
        return self.cases[-1]

    def against(self) -> tuple[str, ...]:
        """Return the divisor of ratios as arguments of Case.has and Case.ratios."""
        return (self.reference,) if self.reference else ()

    def subjects(self) -> list[str]:
        """Return all subjects with a figure: the reference first, memrt last, the rest by name."""
        everybody = {name for case in self.cases for name in case.figures}

        def place(name: str) -> tuple[bool, bool, str]:
            return name != self.reference, name.startswith("memrt"), name

        return sorted(everybody, key=place)


@dataclass
class Result:
    """The results of one part, as stored in a JSON file."""

    part: str
    machine: dict[str, str]
    rounds: int
    groups: list[Group]

    def write(self, path: Path) -> None:
        """Write the result as JSON, with one line per case and subject.

        Figures keep four digits: no measurement is more exact.
        """
        content = asdict(self)
        for group in content["groups"]:
            for case in group["cases"]:
                case["figures"] = {
                    name: [float(f"{figure:.4g}") for figure in figures]
                    for name, figures in case["figures"].items()
                }
        text = json.dumps(content, indent=1, ensure_ascii=False)
        path.write_text(NUMBERS.sub(one_line, text) + "\n", encoding="utf-8")

    @classmethod
    def read(cls, path: Path) -> Result:
        found = json.loads(path.read_text(encoding="utf-8"))
        for group in found["groups"]:
            group["cases"] = [Case(**case) for case in group["cases"]]
        found["groups"] = [Group(**group) for group in found["groups"]]
        return cls(**found)
