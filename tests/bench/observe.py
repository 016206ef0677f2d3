"""The part `observe`: what it costs a block that memrt is asked to watch."""

from __future__ import annotations

from options import Options
from places import WORKERS, compiled
from result import Case, Group
from rounds import Progress, in_turn, run_worker
from subjects import Subject

TOOK = "One block, by what is watched"
ADDED = "What watching adds to a block"
OFF, SCOPE = "off", "in a scope"
LEVELS = {OFF: False, SCOPE: True}  # whether in a scope
IN_C = ("a MemInfo of 64 B, in C", "a block of 64 B, in C")
IN_PYTHON = ("`memrt.empty(8)`", "`np.empty(8)`")
CASES = (*IN_C, *IN_PYTHON)
KINDS = dict(zip(IN_C, ("watched", "watched blocks"), strict=True))
TASKS = dict(zip(IN_PYTHON, ("memrt.empty", "np.empty"), strict=True))
TARGET = 20_000_000  # nanoseconds of one measurement


def levels() -> tuple[str, ...]:
    return tuple(LEVELS)


def groups() -> list[Group]:
    made = "Made and given back, one at a time; NumPy's arrays with `memrt.enable()`."
    return [
        Group(TOOK, made, "ns", OFF),
        Group(ADDED, f"More than with everything {OFF}, of the same round.", "ns", None),
    ]


def in_c(kind: str, level: str, target: int) -> float:
    import memrt

    table = str(compiled(WORKERS / "table.c", f"-I{memrt.get_include()}"))
    needs = {"library": memrt.get_library(), "table": table, "scope": LEVELS[level]}
    job = {"loops": str(compiled(WORKERS / "loops.c")), "loop": "one_live", "size": 64}
    whole = {**job, "target": target, "repeats": 3}
    return run_worker(WORKERS / "blocks.py", whole, Subject(level, kind, needs), "-I")["ns"]


def in_python(task: str, level: str, target: int) -> float:
    job = {"task": task, "scope": LEVELS[level], "target": target, "repeats": 3}
    return run_worker(WORKERS / "observe.py", job, Subject(level, "memrt"))["ns"]


def nanoseconds(case: str, level: str, target: int = TARGET) -> float:
    """Time of one block, in a process of its own."""
    if case in KINDS:
        return in_c(KINDS[case], level, target)
    return in_python(TASKS[case], level, target)


def added(took: Case) -> Case:
    """By round, what each level took more than none."""
    off = took.figures[OFF]
    more = {
        level: [own - least for own, least in zip(figures, off, strict=True)]
        for level, figures in took.figures.items()
        if level != OFF
    }
    return Case(took.name, more)


def measure(options: Options, progress: Progress) -> list[Group]:
    took, more = groups()
    for name in CASES:
        progress(f"{TOOK}: {name}")
        for level in in_turn(LEVELS, options.rounds_of(complete=9, quick=3)):
            took.case(name).add(level, nanoseconds(name, level))
        more.cases.append(added(took.case(name)))
    return [took, more]
