"""Stress memrt for long: `./dev stress churn`, `./dev stress exits` or `./dev stress soak`.

Each NAME is a module with add_arguments(), for its command line, and perform(), for its runs. A
failed run is printed with the command to repeat the run. Long runs of exits and soak write figures
to docs/reliability.md.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from types import ModuleType

import churn
import exits
import soak
from rich.console import Console
from rich.progress import Progress
from runs import ROOT, FailedRunError, GrowthError, Report

sys.path.append(str(ROOT / "tests" / "reliability"))
import page

MODES: dict[str, ModuleType] = {"churn": churn, "exits": exits, "soak": soak}


def arguments(given: Sequence[str] | None) -> argparse.Namespace:
    summary, about = __doc__.split("\n\n", 1)
    parser = argparse.ArgumentParser(prog="./dev stress", description=summary, epilog=about)
    names = parser.add_subparsers(dest="mode", required=True, metavar="NAME")
    for name, mode in MODES.items():
        summary, about = mode.__doc__.split("\n\n", 1)
        mode.add_arguments(names.add_parser(name, help=summary, description=summary, epilog=about))
    return parser.parse_args(given)


def record(report: Report, seconds: float) -> None:
    facts = {"minutes": round(seconds / 60), **report.facts}
    page.record(report.section, report.title, report.about, facts, report.columns, report.rows)


def main(given: Sequence[str] | None = None) -> int:
    options, begin = arguments(given), time.monotonic()
    try:
        with Progress(console=Console(stderr=True)) as progress:
            report = MODES[options.mode].perform(options, progress)
    except (FailedRunError, GrowthError) as error:
        print(error)
        return 1
    print(report.line)
    if report.section:
        record(report, time.monotonic() - begin)
    return 0


if __name__ == "__main__":
    sys.exit(main())
