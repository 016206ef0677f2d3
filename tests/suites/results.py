"""Run pieces of a suite on a side, and keep the results."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from environment import versions
from pieces import NO_RESULT, in_words, watched
from projects import Piece
from sides import Side

PLUGIN = Path(__file__).resolve().parent / "plugin"
LIMIT = 1800  # seconds for one piece
MARKS = "not slow and not xslow and not network"

# Settings that remove differences unrelated to memrt. Free memory decides which tests are skipped,
# the hash seed decides the order of sets and parameters, BLAS threads decide the run time.
STEADY = {
    "NPY_AVAILABLE_MEM": "2GB",
    "SCIPY_AVAILABLE_MEM": "2GB",
    "PYTHONHASHSEED": "0",
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
}


class Results:
    """Results of the suites of one interpreter: stock results by versions, memrt results by build.

    A piece with results is not run again, so an interrupted run can continue.
    """

    def __init__(self, python: Path, site: Path, work: Path, packages: Sequence[str]) -> None:
        self.python, self.site = python, site
        self.versions = versions(python, packages)
        used = "-".join(f"{name}-{self.versions[name]}" for name in ("python", *packages))
        digest = hashlib.sha256(used.encode()).hexdigest()[:8]
        self._folder = work / f"python-{self.versions['python']}-{digest}"

    def file(self, side: Side, piece: Piece) -> Path:
        name = side.name if side.is_stock else f"{side.name}-{self.versions['build']}"
        return self._folder / name / piece.file_name()

    def read(self, side: Side, piece: Piece) -> dict | None:
        file = self.file(side, piece)
        return json.loads(file.read_text()) if file.exists() else None

    def run(self, side: Side, piece: Piece) -> tuple[str, bool]:
        """Run the piece, unless its results exist. Return the outcome in words, and if it ran."""
        result = self.read(side, piece)
        is_new = result is None
        if result is None:
            result = self._run(side, piece)
            self.file(side, piece).write_text(json.dumps(result))
        words = in_words(result["outcomes"])
        return f"{side.name:16} {piece.label()}: {words}, {result['seconds']:.0f} s", is_new

    def _run(self, side: Side, piece: Piece) -> dict:
        raw = self.file(side, piece).with_suffix(".raw").resolve()
        raw.parent.mkdir(parents=True, exist_ok=True)
        raw.unlink(missing_ok=True)
        began = time.monotonic()
        # Paths of sockets are limited to 107 bytes, so the folder is not below the results.
        with tempfile.TemporaryDirectory(prefix="suite-", ignore_cleanup_errors=True) as name:
            folder, environment = Path(name), self._environment(side, raw, name)
            end = watched(self._command(piece), raw.with_suffix(".log"), LIMIT, folder, environment)
        return {**read_raw(raw, end), "end": end, "seconds": time.monotonic() - began}

    def _command(self, piece: Piece) -> list[str | Path]:
        """Return the pytest command, like numpy.test(), without settings of our pyproject.toml."""
        return [
            *(self.python, "-m", "pytest", "-q", "-c", os.devnull, "--rootdir", self.site),
            *("-p", "no:cacheprovider", "-p", "memrt_recorder", "-m", MARKS),
            "--continue-on-collection-errors",
            *(self.site / file for file in piece.files),
        ]

    def _environment(self, side: Side, raw: Path, folder: str) -> Mapping[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("MEMRT_")}
        return {
            **kept,
            **STEADY,
            **side.options,
            "PATH": f"{self.python.parent}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": str(PLUGIN),
            "TMPDIR": folder,
            "SUITE_OUT": str(raw),
            "SUITE_ON_MEMRT": str(int(not side.is_stock)),
        }


def read_raw(raw: Path, end: str) -> dict:
    """Read the file of the recorder: outcomes, and the proof from the end of the session.

    A collected test without an outcome gets "no result".
    """
    outcomes: dict[str, dict[str, str]] = {}
    proof = None
    for line in raw.read_text().splitlines() if raw.exists() else ():
        words = json.loads(line)
        for test in words.get("collected", ()):
            outcomes[test] = {"outcome": NO_RESULT, "detail": end}
        if "test" in words:
            outcomes[words.pop("test")] = words
        proof = words.get("proof", proof)
    return {"outcomes": outcomes, "proof": proof}
