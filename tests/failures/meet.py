"""Run the cases with faults and print the number of failure points (worker process).

usage: python meet.py [--faults NAME,...] [--quick] [--part K/N] [PATTERN ...]

The library of refusing.c must be preloaded, and nomemory and probe must be importable. The exit
status is 1 if a case went wrong or a public name has no case.
"""

from __future__ import annotations

import argparse
import faulthandler
import gc
import sys
import time

import driver
import points
from cases import CASES, make_cuda_policies, missing
from faults import Fault, all_faults, keep_what_makes_calls
from variables import begin_with_places_apart


def chosen_cases(patterns: list[str], part: str) -> list[str]:
    """Return the names with one of the patterns: all, or each N-th from the K-th for part "K/N"."""
    names = [name for name in CASES if any(p in name for p in patterns)]
    which, _, number = part.partition("/")
    return names[int(which) - 1 :: int(number)]


def meet_fault(fault: Fault, names: list[str], wrong: list[str], quick: bool) -> list[driver.Count]:
    counts = []
    keep_what_makes_calls(fault)
    for name in names:
        case = CASES[name]
        if fault.name in case.faults:
            try:
                counts.extend(driver.both(name, case, fault, quick))
            except driver.WrongError as error:
                wrong.append(str(error))
                print(error, file=sys.stderr, flush=True)
    return counts


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument(
        "--faults", default="", help="comma-separated kinds of faults; default: all"
    )
    parser.add_argument("--quick", action="store_true", help="see driver.both()")
    parser.add_argument("--part", default="1/1", metavar="K/N", help="one of N parts of the cases")
    parser.add_argument(
        "patterns", nargs="*", default=[""], help="parts of case names; default: all"
    )
    options = parser.parse_args()
    faulthandler.enable()
    begin_with_places_apart()
    faults = all_faults()
    chosen = options.faults.split(",") if options.faults else list(faults)
    wrong = [f"no case for {name}" for name in sorted(missing())]
    for line in wrong:
        print(line, file=sys.stderr)
    driver.listen()
    make_cuda_policies()
    gc.collect()
    gc.freeze()
    names = chosen_cases(options.patterns, options.part)
    for name in chosen:
        begin = time.monotonic()
        counts = meet_fault(faults[name], names, wrong, options.quick)
        met, refused = sum(c.points for c in counts), sum(c.refused for c in counts)
        seconds = time.monotonic() - begin
        print(f"{name:8} {met:7,} points, {refused:7,} refused, in {seconds:.1f} s", flush=True)
        for count in counts:
            points.note(count.case, count.fault, count.points)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
