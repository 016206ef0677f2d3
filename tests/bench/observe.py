"""The part `observe`: what it costs that memrt watches, and what the answers cost."""

from __future__ import annotations

import million
from levels import ABOUT, FRAMES, LEVELS, OFF, PYTHON, SAMPLED
from options import Options
from places import WORKERS, compiled
from programs import count_program, run_program
from result import Case, Group
from rounds import Progress, in_turn, run_worker

TOOK = "One block, by what is watched"
ADDED = "What watching adds to a block"
PROGRAMS = "Time of whole programs, by what is watched"
INSTRUCTIONS = "Instructions of whole programs, by what is watched"
IN_C = ("a MemInfo of 64 B, in C", "a block of 64 B, in C")
AT_THE_END = f"`np.empty(8)` at the end of {FRAMES} calls"
IN_PYTHON = ("`memrt.empty(8)`", "`np.empty(8)`", AT_THE_END)
CASES = (*IN_C, *IN_PYTHON)
KINDS = dict(zip(IN_C, ("watched", "watched blocks"), strict=True))
TASKS = dict(zip(IN_PYTHON, ("memrt.empty", "np.empty", "calls"), strict=True))
TARGET = 20_000_000  # nanoseconds of one measurement
MEASURED = (OFF, SAMPLED, PYTHON)  # levels of whole programs
TIMES = {"game of life": 12, "coin counting": 6, "cross-validation": 4}  # in their process


def levels(case: str) -> tuple[str, ...]:
    """Those that mean something in a case: C code has no calls of Python."""
    return tuple(name for name, level in LEVELS.items() if level.in_c or case not in IN_C)


def groups() -> list[Group]:
    made = (
        "Made and given back, one at a time; NumPy's arrays with `memrt.enable()`. Python has a "
        f"stack of more than {FRAMES} calls, which the last case makes anew for each array. "
    )
    often = "Those that make most arrays in a second, on memrt. Processor time."
    return [
        Group(TOOK, made + ABOUT, "ns", OFF),
        Group(ADDED, f"More than with everything {OFF}, of the same round.", "ns", None),
        Group(PROGRAMS, often, "ns", OFF),
        *million.groups(),
    ]


def in_c(kind: str, level: str, target: int) -> float:
    import memrt

    table = str(compiled(WORKERS / "table.c", f"-I{memrt.get_include()}"))
    subject = LEVELS[level].subject(level, kind, library=memrt.get_library(), table=table)
    job = {"loops": str(compiled(WORKERS / "loops.c")), "loop": "one_live", "size": 64}
    whole = {**job, "target": target, "repeats": 3}
    return run_worker(WORKERS / "blocks.py", whole, subject, "-I")["ns"]


def in_python(task: str, level: str, target: int) -> float:
    job = {"task": task, "depth": FRAMES, "target": target, "repeats": 3}
    subject = LEVELS[level].subject(level, "memrt")
    return run_worker(WORKERS / "observe.py", job, subject)["ns"]


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
    group = Group(INSTRUCTIONS, "Of one run, by callgrind.", "instructions", OFF)
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
