"""Measure the part `observe`: the cost of observers, and the cost of queries."""

from __future__ import annotations

from options import Options
from parts import million
from parts.levels import ABOUT, FRAMES, LEVELS, OFF, PYTHON, SAMPLED
from parts.programs import count_program, run_program
from places import WORKERS, compiled
from result import Case, Group
from rounds import Progress, in_turn, run_worker

TOOK = "Time of one block, by observer level"
ADDED = "Time added to one block, by observer level"
PROGRAMS = "Time of whole programs, by observer level"
INSTRUCTIONS = "Instructions of whole programs, by observer level"
IN_C = ("a MemInfo of 64 B, in C", "a block of 64 B, in C")
AT_THE_END = f"`np.empty(8)` after {FRAMES} nested calls"
IN_PYTHON = ("`memrt.empty(8)`", "`np.empty(8)`", AT_THE_END)
CASES = (*IN_C, *IN_PYTHON)
KINDS = dict(zip(IN_C, ("watched", "blocks"), strict=True))
TASKS = dict(zip(IN_PYTHON, ("memrt.empty", "np.empty", "calls"), strict=True))
TARGET = 20_000_000  # nanoseconds per measurement
MEASURED = (OFF, SAMPLED, PYTHON)  # levels for whole programs
TIMES = {"game of life": 12, "coin counting": 6, "cross-validation": 4}  # runs per process


def levels(case: str) -> tuple[str, ...]:
    """Return the levels that apply to a case. C code has no Python call stack."""
    return tuple(name for name, level in LEVELS.items() if level.in_c or case not in IN_C)


def groups() -> list[Group]:
    made = (
        "Allocate and free, one block at a time; NumPy's arrays with `memrt.enable()`. The Python "
        f"stack has more than {FRAMES} calls; the last case makes these calls for each array. "
    )
    often = "The programs with most new arrays per second, on memrt. Processor time."
    return [
        Group(TOOK, made + ABOUT, "ns", OFF),
        Group(
            ADDED,
            f"Difference to the column {OFF} of the table above, in the same round.",
            "ns",
            None,
        ),
        Group(PROGRAMS, often, "ns", OFF),
        *million.groups(),
    ]


def in_c(kind: str, level: str, target: int) -> float:
    import memrt

    table = str(compiled(WORKERS / "native" / "table.c", f"-I{memrt.get_include()}"))
    subject = LEVELS[level].subject(level, kind, library=memrt.get_library(), table=table)
    job = {"loops": subject.loops(), "loop": "one_live", "size": 64}
    whole = {**job, "target": target, "repeats": 3}
    return run_worker(WORKERS / "blocks.py", whole, subject, "-I")["ns"]


def in_python(task: str, level: str, target: int) -> float:
    job = {"task": task, "depth": FRAMES, "target": target, "repeats": 3}
    subject = LEVELS[level].subject(level, "memrt")
    return run_worker(WORKERS / "observe.py", job, subject)["ns"]


def nanoseconds(case: str, level: str, target: int = TARGET) -> float:
    """Return the nanoseconds per block, measured in a new process."""
    if case in KINDS:
        return in_c(KINDS[case], level, target)
    return in_python(TASKS[case], level, target)


def added(took: Case) -> Case:
    """Return the extra time of each level over the level `off`, within each round."""
    off = took.figures[OFF]
    more = {
        level: [own - least for own, least in zip(figures, off, strict=True)]
        for level, figures in took.figures.items()
        if level != OFF
    }
    return Case(took.name, more)


def measure_blocks(took: Group, more: Group, options: Options, progress: Progress) -> None:
    for name in CASES:
        progress(f"{TOOK}: {name}")
        for level in in_turn(levels(name), options.rounds_of(complete=9, quick=3)):
            took.case(name).add(level, nanoseconds(name, level))
        more.cases.append(added(took.case(name)))


def measure_programs(group: Group, options: Options, progress: Progress) -> None:
    for name, times in TIMES.items():
        progress(f"{PROGRAMS}: {name}")
        for level in in_turn(MEASURED, options.rounds_of(complete=9, quick=1)):
            subject = LEVELS[level].subject(level, "memrt")
            ns = run_program(name, subject, times=1 if options.quick else times)["ns"]
            group.case(name).add(level, ns)


def count_programs(progress: Progress) -> Group:
    group = Group(
        INSTRUCTIONS, "Instructions of one run, counted by callgrind.", "instructions", OFF
    )
    for name in TIMES:
        progress(f"{INSTRUCTIONS}: {name}")
        for level in MEASURED:
            count = count_program(name, LEVELS[level].subject(level, "memrt"))
            group.case(name).add(level, count)
    return group


def measure(options: Options, progress: Progress) -> list[Group]:
    took, more, programs, *answers = found = groups()
    measure_blocks(took, more, options, progress)
    measure_programs(programs, options, progress)
    million.measure(answers, options, progress)
    if options.instructions:
        found.append(count_programs(progress))
    return found
