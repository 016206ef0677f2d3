"""Write docs/exchange-reference.md: the rules of exchange protocols, with the tests of each.

Usage: python docs/exchange_reference.py [--check]

With --check nothing is written; the exit status says whether the page is as the tests are. A test
belongs to a rule by its name: `test_c06_...` is one of rule C6. What ran on a GPU is in
docs/reliability/gpu.json, which `./dev gpu-test --record` writes.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "exchange-reference.md"
RECORD = ROOT / "docs" / "reliability" / "gpu.json"
TEST = re.compile(r"^(?:def test_|TEST(?:_EACH)?\()([a-z]\d\d)_(\w+)", re.MULTILINE)

PROTOCOLS = {
    "CUDA Array Interface": {
        "C1": "a new dict at each access",
        "C2": "`shape`, `typestr`, `data` and `version` are always there",
        "C3": "`shape` is a tuple of ints",
        "C4": "`typestr` is NumPy's; structured types have `descr`, too",
        "C5": "`data` is a pair of an int and a bool",
        "C6": "the address is of the first element",
        "C7": "an array without elements has the address 0",
        "C8": "read-only is exported, and honoured",
        "C9": "`version` is 3",
        "C10": "`strides` are None for dense arrays, else bytes",
        "C11": "dense arrays are taken whatever says so",
        "C12": "strides of any kind are taken",
        "C13": "as many strides as extents",
        "C14": "a mask is refused, None is none",
        "C15": "without a stream nobody waits",
        "C16": "a stream is never exported as 0",
        "C17": "stream 0, and what is no stream, is refused",
        "C18": "a stream is waited for before the first access",
        "C19": "later work in the producer's stream waits for the consumer's",
        "C20": "the exported stream waits for work in all streams",
        "C21": "a switch passes streams over; it is off",
        "C22": "the exported stream outlives who exported it",
        "C23": "reading the attribute keeps nothing alive; an owner can be named",
        "C24": "with an owner the memory stays, and goes once",
        "C25": "versions 0 to 2 are taken",
        "C26": "what is missing or wrong is an exception that is documented",
        "C27": "foreign byte order and objects are refused",
        "C28": "sizes that overflow are refused",
        "C29": "an address of another context is resolved",
        "C30": "what was released has no address",
    },
    "DLPack": {
        "D1": "`__dlpack__` takes keywords alone, and may be called without any",
        "D2": "tensors with a version for who knows versions, never newer than asked for",
        "D3": "capsules have names that stay, and a destructor",
        "D4": "a capsule that nobody took calls the deleter, a used one does not",
        "D5": "the consumer renames the capsule before anything can fail; twice is an error",
        "D6": "the deleter is called once, on any thread, without the GIL; there may be none",
        "D7": "nothing crashes after the end of Python",
        "D8": "a pending exception survives the deleter",
        "D9": "of another major version only the head is looked at",
        "D10": "read-only memory is marked, and refused where it cannot be",
        "D11": "what is marked, or cannot say, is read-only",
        "D12": "a copy is marked and not shared",
        "D13": "`copy` True copies, False never does",
        "D14": "`dl_device`: where the memory is, or the CPU; no other",
        "D15": "the device is a pair of ints and the right one",
        "D16": "streams of the CPU, of CUDA and of ROCm; 0 of CUDA's is refused",
        "D17": "the consumer's stream waits for pending work",
        "D18": "strides count elements; missing ones are compact before version 1.2",
        "D19": "strides between elements are refused",
        "D20": "without dimensions shape and strides are not read",
        "D21": "without elements there is no data, and any is taken",
        "D22": "the byte offset is honoured",
        "D23": "types that DLPack has not are refused",
        "D24": "lanes, unknown types and parts of bytes are refused, and given back",
        "D25": "bool and complex have their codes and bits",
        "D26": "what no memory can have is refused",
        "D27": "an export is one reference until the deleter",
        "D28": "unknown flags are ignored; the table of C functions is complete",
    },
}

FOLDERS = (
    ("tests/cuda", "*.py"),
    ("tests/python", "*.py"),
    ("tests/clients", "*.py"),
    ("tests/c", "*.c"),
)


def tests() -> dict[str, list[str]]:
    """Names of tests by rule, each as a sentence."""
    found: dict[str, list[str]] = defaultdict(list)
    for folder, pattern in FOLDERS:
        for path in sorted((ROOT / folder).glob(pattern)):
            for rule, name in TEST.findall(path.read_text(encoding="utf-8")):
                found[f"{rule[0].upper()}{int(rule[1:])}"].append(name.replace("_", " "))
    return found


def record() -> dict[str, Any]:
    """What ran on a GPU last; empty when nothing is recorded."""
    return json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.exists() else {}


def on_gpu(rule: str, ran: dict[str, Any]) -> str:
    counts = ran.get("rules", {}).get(rule)
    return f"{counts['passed']} passed" if counts else "not run"


def table(rules: dict[str, str], found: dict[str, list[str]], ran: dict[str, Any]) -> list[str]:
    rows = ["| | rule | tests | on a GPU |", "|---|---|---|---|"]
    for rule, text in rules.items():
        names = "; ".join(found[rule])
        rows.append(f"| {rule} | {text} | {names} | {on_gpu(rule, ran)} |")
    return rows


def page() -> str:
    """The whole page."""
    found, ran = tests(), record()
    lines = ["# Rules of exchange", ""]
    lines += ["Written from the tests by docs/exchange_reference.py; do not edit.", ""]
    where = f"{ran['device']}, with {', '.join(ran['versions'])}" if ran else "nothing is recorded"
    lines += [f"On a GPU, by `./dev gpu-test --record`: {where}.", ""]
    for protocol, rules in PROTOCOLS.items():
        lines += [f"## {protocol}", "", *table(rules, found, ran), ""]
    return "\n".join(lines).rstrip() + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--check", action="store_true", help="only say whether the page is current")
    options = parser.parse_args()
    missing = [r for rules in PROTOCOLS.values() for r in rules if r not in tests()]
    if missing:
        print(f"rules without a test: {', '.join(missing)}", file=sys.stderr)
        return 1
    if not options.check:
        PAGE.write_text(page(), encoding="utf-8")
        return 0
    if PAGE.exists() and PAGE.read_text(encoding="utf-8") == page():
        return 0
    name = PAGE.relative_to(ROOT)
    print(f"{name} is not as the tests are: run docs/exchange_reference.py", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
