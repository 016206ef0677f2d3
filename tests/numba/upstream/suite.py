"""Run Numba's own tests on Numba's runtime and on memrt.

Each test class is split into pieces of at most 25 tests. Each piece has a separate process and a
separate file of results, so that an interrupted run can continue. Results of stock are kept per set
of versions, results of memrt per build of memrt.

No library compares two runtimes over interrupted runs: pytest-xdist and unittest keep no results
per process.
"""

from __future__ import annotations

import fnmatch
import hashlib
import json
import os
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from environment import versions
from pieces import NO_RESULT, in_words, run_all, watched

HERE = Path(__file__).resolve().parent
SIDES = ("stock", "memrt")
PIECE = 25  # maximum of tests per process
LIMIT = 3600  # seconds per piece

# Classes that together use every helper, and run in a few minutes.
CI_PART = (
    "test_nrt.*",
    "test_nrt_refct.*",
    "test_struct_ref.*",
    "test_ndarray_subclasses.*",
    "test_array_return.*",
    "test_buffer_protocol.*",
    "test_dictobject.TestTypedDict",
    "test_dufunc.TestDUFunc",
    "test_dyn_array.TestDynArray",
    "test_generators.TestGeneratorWithNRT",
    "test_generators.TestNrtArrayGen",
    "test_gufunc.TestGUFunc",
    "test_jitclasses.TestJitClass",
    "test_listobject.TestToFromMeminfo",
    "test_lists.TestListManagedElements",
    "test_lists.TestListReflection",
    "test_parfors.TestParforsLeaks",
    "test_print.*",
    "test_setobject.*",
    "test_sets.TestExamples",
    "test_sets.TestSetReflection",
    "test_try_except.TestTryExceptRefct",
    "test_tuples.TestNamedTupleNRT",
    "test_tuples.TestTupleNRT",
    "test_typedlist.TestListRefctTypes",
    "test_unicode.TestUnicodeIteration",
)


@dataclass(frozen=True)
class Piece:
    """Tests of a class, run in one process."""

    name: str
    tests: tuple[str, ...]

    def file(self, folder: Path) -> Path:
        digest = hashlib.sha256("\n".join(self.tests).encode()).hexdigest()[:8]
        return folder / f"{self.name}-{digest}.json"


class Suite:
    """The tests of an interpreter's Numba, and the folder of the results.

    With `refprune`, the side memrt also runs memrt's refcount pruner.
    """

    def __init__(self, python: Path, work: Path, refprune: bool = False) -> None:
        self.python, self.refprune = python, refprune
        self.versions = versions(python, ("numba", "numpy", "llvmlite"))
        self.folder = work / "numba-{numba}-numpy-{numpy}-python-{python}".format(**self.versions)
        self.folder.mkdir(parents=True, exist_ok=True)

    def helpers(self) -> set[str]:
        """Return the symbol names of the helpers in compiled code."""
        code = "from numba.core.runtime import _nrt_python; print(*_nrt_python.c_helpers)"
        names = subprocess.check_output([self.python, "-c", code], text=True).split()
        return {name if name.startswith("_") else f"NRT_{name}" for name in names}

    def classes(self) -> dict[str, list[str]]:
        listing = self.folder / "all-tests.json"
        if not listing.exists():
            subprocess.run([self.python, HERE / "discover.py", listing], check=True)
        return json.loads(listing.read_text())

    def pieces(self, patterns: tuple[str, ...]) -> list[Piece]:
        """Return the pieces of all classes whose dotted names end in one of the patterns."""
        return [
            Piece(name, tuple(tests[i : i + PIECE]))
            for name, tests in self.classes().items()
            if any(fnmatch.fnmatch(name, f"*.{pattern}") for pattern in patterns)
            for i in range(0, len(tests), PIECE)
        ]

    def results_of(self, side: str) -> Path:
        kind = "memrt-refprune" if self.refprune else "memrt"
        name = side if side == "stock" else f"{kind}-{self.versions['build']}"
        folder = self.folder / name
        folder.mkdir(exist_ok=True)
        return folder

    def results(self, side: str, piece: Piece) -> dict:
        """Return the results of a piece, or an empty dict without results."""
        file = piece.file(self.results_of(side))
        return json.loads(file.read_text()) if file.exists() else {}


def run(suite: Suite, pieces: list[Piece], jobs: int, sides: tuple[str, ...] = SIDES) -> None:
    """Run the pieces without results on the given sides, and print the progress."""

    def run_one(work: tuple[str, Piece]) -> tuple[str, bool]:
        side, piece = work
        is_new = not suite.results(side, piece)
        return f"{side:5} {piece.name}: {in_words(run_piece(suite, *work)['outcomes'])}", is_new

    work = [(side, piece) for piece in pieces for side in sides]
    run_all(work, run_one, lambda item: len(item[1].tests), jobs)


def passed(results: dict) -> bool:
    """Return whether all tests passed. A piece that passed on memrt needs no run on stock."""
    outcomes = results.get("outcomes", {})
    return bool(outcomes) and all(entry["outcome"] == "ok" for entry in outcomes.values())


def run_piece(suite: Suite, side: str, piece: Piece) -> dict:
    """Run a piece, unless results exist. Return the results."""
    if existing := suite.results(side, piece):
        return existing
    out = piece.file(suite.results_of(side))
    proof = _fresh_folder(out.with_suffix(".proof"))
    raw = out.with_suffix(".raw")
    raw.unlink(missing_ok=True)
    began = time.monotonic()
    command = [suite.python, HERE / "run_class.py", raw.resolve(), *piece.tests]
    end = watched(command, raw.with_suffix(".log"), LIMIT, proof,
                  _environment(side, proof, suite.refprune))  # fmt: skip
    result = {
        "piece": piece.name,
        "seconds": round(time.monotonic() - began, 1),
        "end": end,
        "outcomes": json.loads(raw.read_text()) if raw.exists() else {},
        "processes": [json.loads(file.read_text()) for file in proof.glob("*.json")],
        "helpers": raw.with_suffix(".helpers").read_text().split() if raw.exists() else [],
    }
    for test in piece.tests:
        result["outcomes"].setdefault(test, {"outcome": NO_RESULT, "detail": end})
    out.write_text(json.dumps(result, indent=1))
    return result


def _fresh_folder(folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    for old in folder.glob("*.json"):
        old.unlink()
    return folder


def _environment(side: str, proof: Path, refprune: bool) -> dict[str, str]:
    return {
        **os.environ,
        "SUITE_REFPRUNE": str(int(refprune)),
        "PYTHONPATH": str(HERE / "site"),
        "SUITE_SIDE": side,
        "SUITE_PROOF": str(proof.resolve()),
    }
