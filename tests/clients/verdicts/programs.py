"""Programs over pandas, scikit-learn, xarray, JAX and Numba, with the expected first findings.

Programs in the folder `planted` have a comment `# planted` at the line of the problem. Programs in
the folder `healthy` must have no finding. The last three planted programs, and the healthy programs
forest_of_trees, joined_tables, scored_by_jax and seasonal_anomalies, were written after the rules
of the findings and did not change the rules. The other programs are older than some rules.
"""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Planted:
    """A program with a planted problem, and the first finding that memrt must report."""

    name: str
    library: str
    rule: str
    holder: str | None
    """Part of the holder's description; None: the finding has no holder."""

    @property
    def script(self) -> Path:
        return HERE / "planted" / f"{self.name}.py"

    @property
    def line(self) -> int:
        lines = self.script.read_text(encoding="utf-8").splitlines()
        return next(number for number, text in enumerate(lines, 1) if text.endswith("# planted"))

    @property
    def place(self) -> str:
        """File and line of the problem."""
        return f"{self.script.name}:{self.line}"

    def is_found_by(self, finding: dict[str, Any]) -> bool:
        """Return whether a finding has the expected rule, line and holder."""
        holder = finding["holder"]
        is_held = holder is None if self.holder is None else self.holder in str(holder)
        is_here = str(finding["place"]).endswith(self.place) and self.place in finding["text"]
        return is_here and is_held and finding["rule"] == self.rule


PLANTED = (
    Planted("frames_cached_by_time", "pandas", "growth", "(a cached result)"),
    Planted("first_rows_of_frames", "pandas", "retained", "previews[...]"),
    Planted("small_counts_as_int64", "pandas", "wide", "visits"),
    Planted("encoded_categories", "scikit-learn", "wide", "codes"),
    Planted("neighbors_with_copies", "scikit-learn", "duplicates", "models[...]"),
    Planted("surface_of_datasets", "xarray", "retained", "surfaces[...]"),
    Planted("standardized_field", "xarray", "temporaries", None),
    Planted("batches_on_device", "JAX", "growth", "seen[...]"),
    Planted("images_as_float64", "JAX", "wide", "images"),
    Planted("error_in_compiled_code", "Numba", "lost", "no Python object"),
    Planted("answers_per_request", "scikit-learn", "growth", "answers[...]"),
    Planted("prices_read_twice", "pandas", "duplicates", None),
    Planted("rating_of_tables", "pandas", "temporaries", None),
)
HEALTHY = tuple(sorted((HERE / "healthy").glob("*.py")))


def findings_of(script: Path, folder: Path) -> list[dict[str, Any]]:
    """Run a program under memrt, and return the findings of its recording."""
    from memrt._profile.recording import loads

    file = folder / f"{script.stem}.memrt"
    options = ["--numba"] if "import numba" in script.read_text(encoding="utf-8") else []
    run = [sys.executable, "-m", "memrt", "run", "--quiet", *options, "--record", file, script]
    subprocess.run(run, check=True, capture_output=True, timeout=120)
    (document,) = loads(file.read_bytes())
    findings: list[dict[str, Any]] = document["findings"]
    return findings
