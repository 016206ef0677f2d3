"""Measure the part `programs`: whole unmodified programs on a single thread."""

from __future__ import annotations

from counts.instructions import counted_by_name
from options import Options
from places import WORKERS
from result import Group
from rounds import Progress, in_turn, run_worker
from subjects import DEFAULT, Subject, environments

TIME = "Time of whole programs"
PEAK = "Resident peak of whole programs"
FAULTS = "Page faults of whole programs"
ON_MEMRT = ("-m", "memrt", "run", "--quiet")
SLOW = ("photo pipeline", "principal components", "cross-validation")  # long programs: one run
TIMES = 3  # runs of each shorter program per process, to outweigh the imports
PROGRAMS = {
    "heat equation": "kernels.heat_equation",
    "Gaussian process": "kernels.gaussian_process",
    "neural network": "kernels.neural_network",
    "n bodies": "kernels.bodies",
    "game of life": "kernels.game_of_life",
    "Monte Carlo": "kernels.monte_carlo",
    "k-means": "kernels.k_means",
    "spectral filter": "kernels.spectral_filter",
    "sparse solver": "science.sparse_solver",
    "interpolation": "science.interpolation",
    "group by": "frames.group_by",
    "rolling statistics": "frames.rolling_statistics",
    "photo pipeline": "images.photo_pipeline",
    "coin counting": "images.coin_counting",
    "principal components": "learning.principal_components",
    "cross-validation": "learning.cross_validation",
}


def run_program(name: str, subject: Subject, **wanted: object) -> dict[str, float]:
    """Run a program in a new process and return the figures."""
    module, program = PROGRAMS[name].split(".")
    job = {"module": module, "program": program, **wanted}
    flags = ON_MEMRT if subject.kind == "memrt" else ()
    return run_worker(WORKERS / "program.py", job, subject, *flags)


def count_program(name: str, subject: Subject) -> float:
    """Return the instructions of a run of a program on memrt."""
    module, program = PROGRAMS[name].split(".")
    job = {"module": module, "program": program}
    return counted_by_name("program.py", job, subject, *ON_MEMRT)[program]


def groups() -> dict[str, Group]:
    about = (
        "NumPy, SciPy, pandas, scikit-image and scikit-learn, one thread, imports not counted. "
        f"Most programs run {TIMES} times per process."
    )
    return {
        "ns": Group(TIME, f"{about} Processor time.", "ns", DEFAULT),
        "peak": Group(PEAK, about, "KiB", DEFAULT),
        "faults": Group(FAULTS, about, "faults", DEFAULT),
    }


def measure(options: Options, progress: Progress) -> list[Group]:
    found = groups()
    subjects = environments("mimalloc", "tcmalloc")
    for name in PROGRAMS:
        progress(name)
        for subject in in_turn(subjects, options.rounds_of(complete=5, quick=1)):
            took = run_program(name, subject, times=1 if name in SLOW else TIMES)
            for key, group in found.items():
                group.case(name).add(subject.name, took[key])
    return list(found.values())
