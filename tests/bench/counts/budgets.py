"""Budgets of instructions: the figures of the fast path now, and their goals.

`./dev verify instructions` fails if a figure is above its budget, so a change cannot make the fast
path longer by accident. A figure well below its budget also fails: an improvement lowers the
figure in this table.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from counts.pairs import Pair

KIB = 1 << 10
COMPILER = "gcc 12"  # compiler of the figures in the table
OTHER_COMPILER = 1.1  # factor of the budgets with every other compiler
SLACK = 2  # instructions of a pair
RATIO_SLACK = 0.005  # of a ratio to NumPy's default handler


@dataclass(frozen=True)
class Limit:
    """A goal, on the figure of a row or on the difference to another row."""

    most: float
    added: bool = False  # `most` limits the difference


GOALS = {
    "J1": Limit(72),
    "J2": Limit(72),
    "J3": Limit(8, added=True),
    "J3b": Limit(12, added=True),
    "J4": Limit(85),
    "J9": Limit(1.03),
}


@dataclass(frozen=True)
class Budget:
    """One row of the table."""

    goal: str  # key of GOALS
    name: str
    figure: float  # instructions of a pair, or a ratio to NumPy's default handler
    pair: Pair | None = None  # None: a ratio of NumPy
    over: str = ""  # name of the row to subtract, for goals of a difference

    @property
    def slack(self) -> float:
        return SLACK if self.pair else RATIO_SLACK

    def most(self, compiler: str) -> float:
        """Return the largest figure that passes."""
        return (self.figure + self.slack) * (1 if compiler == COMPILER else OTHER_COMPILER)

    def least(self, compiler: str) -> float:
        """Return the smallest figure that passes without a new figure in the table."""
        return self.figure - self.slack if compiler == COMPILER and self.pair else 0


CREATION = "np.empty of 8 B to 16 KiB, worst ratio"
OPERATIONS = "twenty operations up to 32 KiB, worst ratio"
MEAN = "twenty operations up to 32 KiB, geometric mean"

#      goal   row                               now  work of pairs.c
BUDGETS = (
    Budget("J1", "MemInfo, 64 B",                66, Pair("meminfo", 64)),
    Budget("J1", "MemInfo, 1 KiB",               66, Pair("meminfo", KIB)),
    Budget("J1", "MemInfo, freed by compiled code", 66, Pair("compiled meminfo", 64)),
    Budget("J2", "block, 64 B",                  70, Pair("block", 64)),
    Budget("J2", "block, 1 KiB",                 74, Pair("block", KIB)),
    Budget("J3", "block, policy, 64 B",          70, Pair("block", 64, "policy"), "block, 64 B"),
    Budget("J3", "block, policy, 1 KiB",         74, Pair("block", KIB, "policy"), "block, 1 KiB"),
    Budget("J3", "block, scope, 64 B",           70, Pair("block", 64, "scope"), "block, 64 B"),
    Budget("J3", "block, scope, 1 KiB",          74, Pair("block", KIB, "scope"), "block, 1 KiB"),
    Budget("J3", "MemInfo, scope, 64 B",         66, Pair("meminfo", 64, "scope"), "MemInfo, 64 B"),
    Budget("J3", "MemInfo, policy, 64 B",        73, Pair("meminfo of policy", 64, "policy"),
           "MemInfo, 64 B"),
    Budget("J3", "MemInfo, options, 64 B",       96, Pair("named meminfo", 64, "policy"),
           "MemInfo, 64 B"),
    Budget("J3", "block, forked child, 64 B",    70, Pair("block", 64, "child"), "block, 64 B"),
    Budget("J3", "block, forked child, 1 KiB",   74, Pair("block", KIB, "child"), "block, 1 KiB"),
    Budget("J3", "block, limit, 64 B",           70, Pair("block", 64, "limit"), "block, 64 B"),
    Budget("J3", "block, limit, 1 KiB",          74, Pair("block", KIB, "limit"), "block, 1 KiB"),
    Budget("J3b", "two policies in turn, 64 B",  81, Pair("two policies", 64), "block, 64 B"),
    Budget("J3b", "two policies in turn, 1 KiB",  84, Pair("two policies", KIB), "block, 1 KiB"),
    Budget("J3b", "MemInfos of two policies, 64 B", 80, Pair("meminfos of two policies", 64),
           "block, 64 B"),
    Budget("J3b", "freed in a scope, 64 B",      77, Pair("older", 64), "block, 64 B"),
    Budget("J3b", "freed in a scope, 1 KiB",     81, Pair("older", KIB), "block, 1 KiB"),
    Budget("J4", "block of zeros, 64 B",         83, Pair("zeroed block", 64)),
    Budget("J9", CREATION,                    1.020),
    Budget("J9", OPERATIONS,                  1.025),
    Budget("J9", MEAN,                        0.993),
)  # fmt: skip


def goal_text(budget: Budget) -> str:
    """Return the goal of a row in words, such as `block, 64 B + 8`."""
    limit = GOALS[budget.goal]
    return f"{budget.over} + {limit.most}" if limit.added else f"{limit.most}"


def is_met(budget: Budget, figures: Mapping[str, float]) -> bool:
    """Whether the figure of a row, as printed, meets the goal.

    A loop has a slow path now and then, which adds a few hundredths of an instruction to a pair.
    """
    base = figures[budget.over] if budget.over else 0
    return round(figures[budget.name] - base, 1 if budget.pair else 3) <= GOALS[budget.goal].most


def number(budget: Budget, figure: float) -> str:
    return f"{figure:.1f}" if budget.pair else f"{figure:.3f}"


def complaint(budget: Budget, figure: float, compiler: str) -> str | None:
    """Return a sentence if a figure is above its budget, or well below; else None."""
    measured = f"{budget.name}: measured {number(budget, figure)}"
    if figure > (most := budget.most(compiler)):
        return f"{measured}, above the budget of {number(budget, most)}"
    if figure < budget.least(compiler):
        was = f"the figure {number(budget, budget.figure)} in tests/bench/counts/budgets.py"
        return f"{measured}: lower {was} to the measured figure"
    return None
