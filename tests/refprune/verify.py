"""Prove the refcount pruner, and measure it: the work behind `./dev verify refprune`.

    ./dev verify refprune                  explore all paths of 100,000 random functions
    ./dev verify refprune --functions N    the same, of N functions
    ./dev verify refprune --figures        also measure the pruner on Numba, and write the figures
                                           into docs/guide/numba/refprune.md; takes ten minutes

`./dev suites numba --refprune` runs Numba's own tests with the pruner, and
`./dev mutate --bindings` seeds bugs in the engine.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / path) for path in ("python/support", "numba/upstream")]
import chore as numba_chore  # noqa: E402
import oracle_run  # noqa: E402
from refprune_oracle import ViolationError  # noqa: E402

PAGE = ROOT / "docs" / "guide" / "numba" / "refprune.md"
BEGIN = "<!-- figures: begin, written by ./dev verify refprune --figures -->"
END = "<!-- figures: end -->"


def check_functions(functions: int) -> bool:
    began = time.monotonic()
    try:
        count = oracle_run.run(functions)
    except ViolationError as error:
        print(f"refprune: {error}")
        return False
    seconds = time.monotonic() - began
    print(
        f"{count.functions:,} random functions: {count.removed:,} calls removed in "
        f"{count.pruned:,}, no use after free and no change of balance, {seconds:.0f} s"
    )
    return True


def write_figures() -> bool:
    python = numba_chore.newest_python()
    command = [python, Path(__file__).with_name("figures.py")]
    ended = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False)
    if ended.returncode == 0:
        write_into(PAGE, ended.stdout)
    return ended.returncode == 0


def write_into(page: Path, text: str) -> None:
    """Write the figures between the markers of a page. Raise ValueError without markers."""
    before, found, rest = page.read_text(encoding="utf-8").partition(BEGIN)
    _, marker, after = rest.partition(END)
    if not (found and marker):
        raise ValueError(f"{page} must have the lines '{BEGIN}' and '{END}', got a page without")
    page.write_text(f"{before}{BEGIN}\n\n{text.strip()}\n\n{END}{after}", encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="./dev verify refprune",
        description=__doc__,
        formatter_class=argparse.RawTextHelpFormatter,
    )
    parser.add_argument("--functions", type=int, default=100_000)
    parser.add_argument("--figures", action="store_true")
    options = parser.parse_args()
    is_right = check_functions(options.functions)
    return 0 if is_right and (not options.figures or write_figures()) else 1


if __name__ == "__main__":
    sys.exit(main())
