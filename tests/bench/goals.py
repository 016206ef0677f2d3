"""Define the performance goals of memrt, and compare measured figures with the goals.

No library holds such goals: pyperf compares a run with an earlier run, not ratios within a round
with bounds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from counts import budgets
from parts import (
    alloc,
    instructions,
    levels,
    memory,
    numba_kernels,
    numpy_ops,
    observe,
    programs,
    see,
    threads,
)
from result import Case, Result, Spread
from subjects import BLOCKS, DEFAULT, MEMRT, NRT_OFF, NRT_ON, UNCOUNTED

MET, NOT_MET, NOT_MEASURED = "met", "not met", "not measured"
NOT_SLOWER = 1.03  # allows 3 % of noise in whole Python processes
MALLOCS = ("glibc", "mimalloc", "tcmalloc")


@dataclass(frozen=True)
class Goal:
    """One bound on the figures of one group."""

    number: str
    text: str
    part: str
    group: str  # title of the group
    bound: float
    cases: tuple[str, ...] = ()  # substrings of case names; empty: all cases
    over: str = MEMRT  # the subject under test
    under: tuple[str, ...] = ()  # divisor: the minimum of these subjects; empty: no division
    faster: bool = False  # `under` / `over` must be at least the bound
    mean: bool = False  # judge the geometric mean of all cases; else each case must hold
    unit: str = ""  # unit of the bound
    also: tuple[str, ...] = ()  # titles of further groups of the part
    limit: str = ""  # the known reason for a miss


@dataclass(frozen=True)
class Verdict:
    """The result of one goal: its state, the worst case and the counts."""

    goal: Goal
    state: str
    case: str = ""  # name of the worst case
    spread: Spread | None = None
    failed: int = 0  # number of cases that miss the bound
    cases: int = 0


P1_CASE = ("64 B, one live",)
SMALL_CASES = tuple(
    f"{size}, {live} live" for size in alloc.SMALL if size != "16 B" for live in ("one", "64")
)
LARGE_OUT = ("64 KiB", "256 KiB", "1 MiB", "4 MiB", "16 MiB", "64 MiB", "256 MiB")
LAZY = ("untouched, 64 MiB", "untouched, 256 MiB")
KERNELS = numba_kernels.GROUP
ALLOCATING = (
    "temporaries",
    "arrays of",
    "strings",
    "lists",
    "dicts",
    "sets",
    "an array to",
    "from",
)


def peers(*names: str) -> dict:
    return {"under": names}


HEADER = (
    "a block of memrt is a MemInfo: an allocation and a free write a line of the header and two "
    "counters each; a malloc writes one or two words. The table of instructions shows the "
    "instructions of both."
)
NEAR = (
    "Numba's runtime takes two to three times as long as glibc's malloc here, so a fourth of the "
    "runtime's time is about the time of the fastest malloc."
)
CLOSE = (
    "a thirtieth of the time of Numba's runtime is less than the time of two calls by pointer: on "
    "a machine of two cores with a common cache, shared counters cost less than on larger machines."
)
NOT_TWO_WHOLE = (
    "peers without shared state between threads slow down as much in the same table: the two cores "
    "of the machine share resources."
)
LISTS = (
    "batches of freed blocks move without a lock, but the header of each block moves from the "
    "cache of the other core; peers have their words in the line that the program touches next."
)
ONE_BY_ONE = (
    "a thread cache keeps large blocks up to a quarter of the memory in use, 2 MiB at most; all "
    "further large blocks move through shared lists in batches, each with pages of its own, so "
    "that the memory can return to the system; tcmalloc and mimalloc let threads keep all."
)
KEPT_BY_NUMPY = (
    "NumPy's default keeps blocks of up to 1 KiB in lists without statistics; memrt adds about 100 "
    "instructions to the 2,000 of an array."
)
BOUNDS = (
    "the remaining cost is page faults: memrt returns memory so that the process grows by a "
    "twentieth at most, and later allocations fault pages in again. Peers with fewer faults have "
    "larger peaks and return no memory."
)
LINES = (
    "see P1; in addition, a header takes a whole cache line, so the first-level cache holds half "
    "as many small blocks."
)
CALLS = "two calls by pointer cost about half as much as two locked adds."
CACHES = (
    "the second-level cache holds the arrays of `out=`, but not the five arrays of the expression; "
    "tcmalloc and mimalloc miss the goal by as much."
)
COUNTING = "an allocation adds to two counters, and a free adds to two counters."
NOTHING_LEFT = (
    "the sum into an existing array takes nearly as long, so the allocation takes too small a part "
    "of the time: after the first free of a block of this size, glibc keeps further blocks."
)
OWN_MALLOC = (
    "Numba's C code allocates the items of typed lists by direct calls of malloc; a preloaded "
    "malloc serves these calls, memrt does not."
)

STEPS = (
    "libunwind takes 40 ns to start and 8 ns for each of ten calls, two of them calls of memrt; a "
    "list of blocks with its two locks takes 75 ns. The sum is 190 ns in a C program without other "
    "load, and more while other processes share the cores."
)
OTHERS = (
    "processor time of the same program varies by a tenth between rounds while other processes "
    "share the cores, in both directions; instruction counts do not vary."
)


FRESH = (
    "the kernel clears the fresh pages of both, which takes nearly all of the time and varies by a "
    "half between rounds of the same subject."
)
ADOPTED = (
    "of the 2,237 instructions for an array from Python, Numba's runtime has 114 less: an adopted "
    "MemInfo counts its bytes in its account, and its owner is a structure of its own. Every other "
    "kernel but sets, with 3 % more, takes fewer instructions."
)
MANY_TABLES = (
    "the tables of 64,000 segments fill the second-level cache several times, so a release waits "
    "for memory at each segment. Three runs gave 1.35, 1.44 and 1.58."
)
PAIR = (
    "a block of 1 KiB has a header with the size and the account, a tiny block has none; of the "
    "pair, 10 instructions count, 2 encode the link of a free block, and 2 check for observers. "
    "Without counters the pair takes 63."
)
STRUCT = (
    "`meminfo_new` with a policy reads the members of a structure of options. `allocate_from`, "
    "with the policy as an argument, adds 7 instructions."
)
MALLOC_WORK = (
    "the Fourier transform takes its work space from glibc's malloc. glibc keeps blocks of that "
    "size after arrays of glibc were freed, and memrt's arrays are not glibc's: each transform of "
    "1 MiB then has 480 page faults. With the thresholds of [cached memory]"
    "(guide/services/cached-memory.md) in the environment, the transform takes 0.72 ms on memrt "
    "and 0.79 ms on the default."
)
KEPT_BLOCKS = (
    "cross-validation has 5 MiB in use. A thread cache keeps freed blocks of 32 to 64 KiB, as much "
    "as is in use and 512 KiB, and each of the many size classes keeps a span. With a quarter of "
    "the use the peak falls from 7.4 to 6.9 MiB, and another trace grows from 68.4 to 71.0 MiB."
)
CONTEXTS = (
    "an array of 64 B is one allocation of 102 instructions. Of the 24 that a policy adds, 17 "
    "compare the context of the running task with the last one, because CPython has no cheaper "
    "sign of a change, and 7 are those of `allocate_from`."
)


def budgeted(key: str, text: str, limit: str = "") -> Goal:
    """Return the goal of the rows of budgets.py with the key `key`."""
    group = instructions.ADDED if budgets.GOALS[key].added else instructions.TOTAL
    rows = tuple(row.name for row in budgets.BUDGETS if row.goal == key)
    most = budgets.GOALS[key].most
    return Goal(key, text, "alloc", group, most, rows, unit="instructions", limit=limit)


GOALS = (
    Goal("P1", "64 B, one live: against the fastest malloc", "alloc", alloc.ONE, 1.0,
         P1_CASE, **peers(*MALLOCS),
         limit=HEADER),
    Goal("P1", "64 B, one live: NRT, statistics off, against memrt", "alloc", alloc.ONE, 4.0,
         P1_CASE, **peers(NRT_OFF), faster=True,
         limit=NEAR),
    Goal("P1", "64 B, one live: NRT, statistics on, against memrt", "alloc", alloc.ONE, 6.0,
         P1_CASE, **peers(NRT_ON), faster=True,
         limit=NEAR),
    budgeted("J1", "a MemInfo, in instructions"),
    budgeted("J2", "a block, in instructions", limit=PAIR),
    budgeted("J3", "a policy, scope or fork: instructions added", limit=STRUCT),
    budgeted("J3b", "policies in turn, frees in a scope: instructions added"),
    budgeted("J4", "a zeroed block, in instructions"),
    Goal("P2", "64 and 1,000 live, random order: against the best peer", "alloc", alloc.MANY, 1.1,
         **peers(*alloc.PEERS),
         limit=LINES),
    Goal("P3", "two threads against one", "threads", threads.SCALING, 1.15,
         limit=NOT_TWO_WHOLE),
    Goal("P3", "two threads: NRT, statistics on, against memrt", "threads", threads.OWN, 30.0,
         ("64 B",), **peers(NRT_ON), faster=True,
         limit=CLOSE),
    Goal("P3, J16", "policy_new and policy_release among 4,000 dead policies", "threads",
         threads.POLICIES, 5000.0, ("dead",), unit="ns"),
    Goal("P4, J7", "freed by another thread: against the best peer", "threads", threads.HANDED,
         1.2, **peers(*alloc.PEERS),
         limit=LISTS),
    Goal("P4", "growth while another thread frees", "memory", memory.HANDED, 1024, unit="KiB"),
    Goal("P5", "acquire and release, inlined: against two bare locked adds", "alloc",
         alloc.REFERENCES, 1.1, over=alloc.INLINED, **peers(alloc.LIMIT)),
    Goal("P5", "acquire and release through the table: against two bare locked adds", "alloc",
         alloc.REFERENCES, 1.1, **peers(alloc.LIMIT),
         limit=CALLS),
    Goal("P6", "32 KiB to 8 MiB, one and 64 live: against the best peer", "alloc",
         alloc.LARGE_BLOCKS, 1.2, **peers(*alloc.PEERS),
         limit=ONE_BY_ONE),
    Goal("J5", "NumPy's blocks of 64 B to 4 KiB, one and 64 live: against the best peer", "alloc",
         alloc.ONE, 1.1, SMALL_CASES, over=BLOCKS, **peers(*alloc.PEERS), also=(alloc.MANY,),
         limit=LINES),
    Goal("J5", "MemInfos of 64 B to 4 KiB, one and 64 live: against the best peer", "alloc",
         alloc.ONE, 1.25, SMALL_CASES, **peers(*alloc.PEERS), also=(alloc.MANY,),
         limit=LINES),
    Goal("J6", "NumPy's blocks of 32 KiB to 8 MiB, one and 64 live, one thread and two: against "
         "the best peer", "alloc", alloc.LARGE_BLOCKS, 1.2, over=BLOCKS, **peers(*alloc.PEERS),
         also=(alloc.IN_TWO_THREADS,),
         limit=ONE_BY_ONE),
    Goal("J5, J6", "NumPy's blocks of 64 B to 8 MiB: against the best peer, geometric mean",
         "alloc", alloc.ONE, 1.0, alloc.HANDLER_CASES, over=BLOCKS, **peers(*alloc.PEERS),
         mean=True, also=(alloc.MANY, alloc.LARGE_BLOCKS, alloc.IN_TWO_THREADS),
         limit=LINES),
    Goal("J10", "the expression at every size: against the best peer", "numpy",
         numpy_ops.EXPRESSION, 1.03, **peers(DEFAULT, *numpy_ops.PEERS[:2]),
         limit=KEPT_BY_NUMPY),
    Goal("P7, J10", "the expression from 64 KiB: against `out=`", "numpy",
         numpy_ops.EXPRESSION, 1.03, LARGE_OUT, **peers(f"{MEMRT}, out="),
         limit=CACHES),
    Goal("P7", "the expression at every size: against NumPy's default", "numpy",
         numpy_ops.EXPRESSION, NOT_SLOWER, **peers(DEFAULT),
         limit=KEPT_BY_NUMPY),
    Goal("P7", "twenty operations: against NumPy's default", "numpy", numpy_ops.OPERATIONS,
         NOT_SLOWER, **peers(DEFAULT),
         limit=MALLOC_WORK),
    Goal("P7, J9", "twenty operations up to 32 KiB, in instructions: against the default", "numpy",
         numpy_ops.IN_INSTRUCTIONS["operations"], NOT_SLOWER, **peers(DEFAULT),
         limit=KEPT_BY_NUMPY),
    Goal("P8", "`np.zeros`: against NumPy's default", "numpy", numpy_ops.ZEROS, NOT_SLOWER,
         **peers(DEFAULT), limit=FRESH),
    Goal("P8", "`np.zeros`, large and untouched: against jemalloc", "numpy", numpy_ops.ZEROS,
         NOT_SLOWER, LAZY, **peers("jemalloc")),
    Goal("P9", "first fill: against NumPy's default", "numpy", numpy_ops.FIRST_FILL, NOT_SLOWER,
         **peers(DEFAULT), limit=FRESH),
    Goal("P10, J12", "resident peak over recorded traces: against the default", "memory",
         memory.TRACES_PEAK, 1.1, **peers(memory.GLIBC),
         limit=KEPT_BLOCKS),
    Goal("P10, J11", "resident peak of whole programs: against the default", "programs",
         programs.PEAK,
         1.1, **peers(DEFAULT)),
    Goal("P10", "kept one second after traces, of 5 % of the peak or 16 MiB", "memory", memory.KEPT,
         1.0),
    Goal("P10", "kept one second after programs, above the default, of 5 % of the peak or 16 MiB",
         "memory", memory.KEPT_PROGRAMS, 1.0),
    Goal("P10", "kept after release_unused()", "memory", memory.RELEASED, 1024, unit="KiB"),
    Goal("P10", "cached after release_unused(), by the statistics", "memory", memory.CACHED, 0,
         unit="KiB"),
    Goal("P10b", "a million live arrays of 8 to 64 bytes: against the default", "memory",
         memory.TINY, 1.25, **peers(DEFAULT)),
    Goal("P11", "growth from the 1,000th to the 10,000th short-lived thread", "memory",
         memory.THREADS, 256, unit="KiB"),
    Goal("P12, J8", "64 B, one live: against memrt without counters", "alloc", alloc.ONE, 1.05,
         P1_CASE, **peers(UNCOUNTED),
         limit=COUNTING),
    Goal("P12, J8", "two threads: against memrt without counters", "threads", threads.OWN, 1.05,
         ("64 B",), **peers(UNCOUNTED),
         limit=COUNTING),
    Goal("P13", "`np.empty` on memrt: against NumPy's default", "numpy", numpy_ops.CREATION,
         NOT_SLOWER, **peers(DEFAULT),
         limit=KEPT_BY_NUMPY),
    Goal("P13, J9", "`np.empty` on memrt, in instructions: against NumPy's default", "numpy",
         numpy_ops.IN_INSTRUCTIONS["creation"], NOT_SLOWER, **peers(DEFAULT),
         limit=KEPT_BY_NUMPY),
    Goal("P13", "`memrt.empty`: against `np.empty`", "numpy", numpy_ops.CREATION, 1.5,
         over=f"{MEMRT}, memrt.empty", **peers(DEFAULT)),
    Goal("P14", "temporaries of 2 MiB: Numba's runtime against memrt", "numba", KERNELS, 4.0,
         ("temporaries of 2 MiB",), **peers(DEFAULT), faster=True,
         limit=NOTHING_LEFT),
    Goal("P14", "temporaries of 256 KiB: Numba's runtime against memrt", "numba", KERNELS, 1.15,
         ("temporaries of 256 KiB",), **peers(DEFAULT), faster=True,
         limit=NOTHING_LEFT),
    Goal("P14, J14", "small arrays and strings: Numba's runtime against memrt", "numba",
         KERNELS, 1.2,
         ("arrays of", "strings"), **peers(DEFAULT), faster=True),
    Goal("P14", "lists: Numba's runtime against memrt", "numba", KERNELS, 1.6,
         ("lists",), **peers(DEFAULT), faster=True,
         limit=OWN_MALLOC),
    Goal("P14", "temporaries, arrays, strings, lists: against preloaded tcmalloc", "numba",
         KERNELS, 1.0, ("temporaries", "arrays of", "strings", "lists"), **peers("tcmalloc"),
         limit=OWN_MALLOC),
    Goal("P14, J14", "every kernel: against Numba's runtime", "numba", KERNELS, NOT_SLOWER,
         ALLOCATING, **peers(DEFAULT), limit=ADOPTED),
    *(Goal("J13", f"small arrays, strings, lists: {place}, against no policy", "numba",
           numba_kernels.WITHIN, 1.1, ("arrays of", "strings", "lists"), over=place, **peers(MEMRT),
           limit=CONTEXTS)
      for place in (numba_kernels.POLICY, numba_kernels.SCOPE, numba_kernels.RUN)),
    Goal("P14", "every kernel, in instructions: against Numba's runtime", "numba",
         numba_kernels.INSTRUCTIONS, NOT_SLOWER, ALLOCATING, **peers(DEFAULT), limit=ADOPTED),
    Goal("P15, J11", "whole programs: against tcmalloc, geometric mean", "programs",
         programs.TIME, 1.0,
         **peers("tcmalloc"), mean=True,
         limit=BOUNDS),
    Goal("P15, J11", "whole programs: against mimalloc, geometric mean", "programs",
         programs.TIME, 1.0,
         **peers("mimalloc"), mean=True,
         limit=BOUNDS),
    Goal("P15", "whole programs: default against memrt, geometric mean", "programs", programs.TIME,
         1.12, **peers(DEFAULT), faster=True, mean=True,
         limit=BOUNDS),
    Goal("P15", "each program: default against memrt", "programs", programs.TIME, 0.98,
         **peers(DEFAULT), faster=True,
         limit=MALLOC_WORK),
    Goal("P16", "a scope: added to a block of C", "observe", observe.ADDED, 5.0,
         observe.IN_C, over=levels.SCOPE, unit="ns",
         limit=OTHERS),
    Goal("P16, J17", "a scope: added to an array", "observe", observe.ADDED, 5.0,
         observe.IN_PYTHON, over=levels.SCOPE, unit="ns",
         limit=OTHERS),
    Goal("P16", "an allocation site in Python: added to an array", "observe", observe.ADDED,
         1000.0, observe.IN_PYTHON, over=levels.PYTHON, unit="ns"),
    Goal("P16, J17", "an allocation site in native code: added to a block of C", "observe",
         observe.ADDED, 200.0, observe.IN_C, over=levels.NATIVE, unit="ns",
         limit=STEPS),
    Goal("P16", "sampling: whole programs, against runs without sampling", "observe",
         observe.PROGRAMS, 1.02, over=levels.SAMPLED, **peers(levels.OFF),
         limit=OTHERS),
    Goal("P16", "sampling: whole programs, in instructions", "observe", observe.INSTRUCTIONS,
         1.02, over=levels.SAMPLED, **peers(levels.OFF)),
    Goal("P17, J15", "time per segment, 16,000 segments: against 2,000 segments", "alloc",
         alloc.SEGMENTS, 1.5, over=alloc.MANY_SEGMENTS, **peers(alloc.FEW_SEGMENTS)),
    Goal("P17, J15", "time per segment, 64,000 segments: against 2,000 segments", "alloc",
         alloc.SEGMENTS, 1.5, over=alloc.MOST_SEGMENTS, **peers(alloc.FEW_SEGMENTS),
         limit=MANY_TABLES),
    Goal("P17, J15", "worst fork during a release of many segments", "alloc", alloc.FORKS, 5.0,
         unit="ms"),
    Goal("P18", "a report page opens", "see", see.OPENED, 3000.0, unit="ms"),
)  # fmt: skip


def selected(goal: Goal, result: Result) -> list[Case]:
    """Return the cases of a goal in which all subjects of the goal were measured."""
    titles = (goal.group, *goal.also)
    found = [case for group in result.groups if group.title in titles for case in group.cases]
    chosen = [
        case for case in found if not goal.cases or any(part in case.name for part in goal.cases)
    ]
    return [case for case in chosen if case.has(goal.over, *goal.under)]


def measured(goal: Goal, case: Case) -> np.ndarray:
    """Return the bounded figure of each round."""
    ratios = case.ratios(goal.over, *goal.under)
    return 1 / ratios if goal.faster else ratios


def holds(goal: Goal, spread: Spread, one_of_many: bool) -> bool:
    """Return True if the median keeps the bound.

    `one_of_many` means more than four cases; some of them miss the bound by chance. Each of these
    cases fails only if three in four of its rounds are also on the wrong side of 1. The
    exception holds only for bounds that allow ratios worse than 1.
    """
    if goal.faster:
        return spread.middle >= goal.bound or (one_of_many and spread.high >= 1 > goal.bound)
    return spread.middle <= goal.bound or (one_of_many and spread.low <= 1 < goal.bound)


def by_mean(goal: Goal, cases: list[Case]) -> Verdict:
    """Judge the geometric mean of all cases, computed within each round that all cases have."""
    every = [np.log(measured(goal, case)) for case in cases]
    logs = [found[: min(map(len, every))] for found in every]
    spread = Spread.of(np.exp(np.mean(logs, axis=0)))
    state = MET if holds(goal, spread, one_of_many=False) else NOT_MET
    return Verdict(goal, state, f"mean of {len(cases)}", spread, 0, len(cases))


def by_each(goal: Goal, cases: list[Case]) -> Verdict:
    """Judge each case separately. The verdict names the worst case."""
    spreads = {case.name: Spread.of(measured(goal, case)) for case in cases}
    failed = [n for n, spread in spreads.items() if not holds(goal, spread, len(cases) > 4)]
    worst = (min if goal.faster else max)(failed or spreads, key=lambda name: spreads[name].middle)
    state = NOT_MET if failed else MET
    return Verdict(goal, state, worst, spreads[worst], len(failed), len(cases))


def judge(goal: Goal, results: Mapping[str, Result]) -> Verdict:
    """Return the verdict of a goal from the results of the parts."""
    cases = selected(goal, results[goal.part]) if goal.part in results else []
    if not cases:
        return Verdict(goal, NOT_MEASURED)
    return by_mean(goal, cases) if goal.mean else by_each(goal, cases)
