"""Worker: has the cases meet faults, and says how often; 1 when something was wrong.

usage: python meet.py [--faults NAME,...] [PATTERN ...]

refusing.c must be preloaded, nomemory and probe importable.
"""

from __future__ import annotations

import argparse
import gc
import sys
import time

import driver
import points
from cases import CASES, make_cuda_policies, missing
from faults import Fault, all_faults, keep_what_makes_calls
from variables import begin_with_places_apart


def meet_fault(fault: Fault, patterns: list[str], wrong: list[str]) -> list[driver.Count]:
    counts = []
    keep_what_makes_calls(fault)
    for name, case in CASES.items():
        if any(p in name for p in patterns) and fault.name in case.faults:
            try:
                counts.extend(driver.both(name, case, fault))
            except driver.WrongError as error:
                wrong.append(str(error))
                print(error, file=sys.stderr, flush=True)
    return counts


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--faults", default="", help="names with commas between; all without")
    parser.add_argument("patterns", nargs="*", default=[""], help="parts of cases' names")
    options = parser.parse_args()
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
    for name in chosen:
        begin = time.monotonic()
        counts = meet_fault(faults[name], options.patterns, wrong)
        met, refused = sum(c.points for c in counts), sum(c.refused for c in counts)
        seconds = time.monotonic() - begin
        print(f"{name:8} {met:7,} points, {refused:7,} refused, in {seconds:.1f} s", flush=True)
        for count in counts:
            points.note(count.case, count.fault, count.points)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
