"""Write the page with the rules of exchange protocols and the tests of each rule.

Tests in Python name their rule by the mark `@pytest.mark.rule("C6")`, tests in C by the line
`/// Rule C6.` directly above TEST. Test results from a GPU are in docs/reference/gpu.json, which
`./dev gpu --record` writes.
"""

from __future__ import annotations

import ast
import json
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
RECORD = ROOT / "docs" / "reference" / "gpu.json"
C_TEST = re.compile(r"^/// Rule (\w+)\.\n(?:///.*\n)*TEST(?:_EACH)?\((\w+)", re.MULTILINE)
MARK = "pytest.mark.rule"

PROTOCOLS = {
    "CUDA Array Interface": {
        "C1": "each access returns a new dict",
        "C2": "`shape`, `typestr`, `data` and `version` are always present",
        "C3": "`shape` is a tuple of ints",
        "C4": "`typestr` is NumPy's; structured types have `descr`, too",
        "C5": "`data` is a pair of an int and a bool",
        "C6": "the address is of the first element",
        "C7": "an array without elements has the address 0",
        "C8": "the read-only flag is exported, and respected on import",
        "C9": "`version` is 3",
        "C10": "`strides` are None for dense arrays, else bytes",
        "C11": "dense arrays are imported with or without strides",
        "C12": "strides of any kind are imported",
        "C13": "the number of strides must equal the number of extents",
        "C14": "a mask is refused; None means no mask",
        "C15": "an import without a stream does not wait",
        "C16": "a stream is never exported as 0",
        "C17": "stream 0 and invalid streams are refused",
        "C18": "the first access waits for the stream",
        "C19": "later work in the producer's stream waits for the consumer's work",
        "C20": "the exported stream waits for work in all streams",
        "C21": "an option ignores streams; the default is off",
        "C22": "the exported stream outlives the exporting array",
        "C23": "reading the attribute keeps no object alive; an import may name an owner",
        "C24": "an owner keeps the memory, and is released once",
        "C25": "versions 0 to 2 are imported",
        "C26": "a missing or wrong entry raises a documented exception",
        "C27": "foreign byte order and objects are refused",
        "C28": "sizes that overflow are refused",
        "C29": "an address of another context is resolved",
        "C30": "a released array has no address",
    },
    "DLPack": {
        "D1": "`__dlpack__` takes only keywords, all optional",
        "D2": "versioned tensors on request, never newer than the requested version",
        "D3": "capsules have static names and a destructor",
        "D4": "an unused capsule calls the deleter, a used capsule does not",
        "D5": "the consumer renames the capsule before any step can fail; a second use fails",
        "D6": "the deleter is called once, on any thread, without the GIL; the deleter may be NULL",
        "D7": "deleters after the end of Python do not crash",
        "D8": "a pending exception survives the deleter",
        "D9": "of a tensor with another major version, only the head is read",
        "D10": "read-only memory is marked, and refused for unversioned tensors",
        "D11": "marked and unversioned tensors are read-only",
        "D12": "a copy is marked, and shares no memory",
        "D13": "`copy` True copies, False never does",
        "D14": "`dl_device` is the device of the memory, or the CPU",
        "D15": "the device is a pair of ints, and correct",
        "D16": "streams of the CPU, of CUDA and of ROCm; 0 of CUDA's is refused",
        "D17": "the consumer's stream waits for pending work",
        "D18": "strides count elements; before version 1.2, missing strides mean compact",
        "D19": "strides between elements are refused",
        "D20": "without dimensions shape and strides are not read",
        "D21": "without elements, data is NULL on export and ignored on import",
        "D22": "the byte offset is respected",
        "D23": "types missing in DLPack are refused",
        "D24": "lanes, unknown types and sub-byte types are refused, and the tensor is deleted",
        "D25": "bool and complex have their codes and bits",
        "D26": "impossible shapes and sizes are refused",
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


def marked_tests(text: str) -> Iterator[tuple[str, str]]:
    """Yield rule and name of each test in Python source code with the mark `rule`."""
    for node in ast.parse(text).body:
        for decorator in getattr(node, "decorator_list", ()):
            if isinstance(decorator, ast.Call) and ast.unparse(decorator.func) == MARK:
                yield ast.literal_eval(decorator.args[0]), node.name.removeprefix("test_")


def tests() -> dict[str, list[str]]:
    """Return the names of the tests of each rule, with spaces for underscores."""
    found: dict[str, list[str]] = defaultdict(list)
    for folder, pattern in FOLDERS:
        for path in sorted((ROOT / folder).rglob(pattern)):
            text = path.read_text(encoding="utf-8")
            pairs = marked_tests(text) if path.suffix == ".py" else C_TEST.findall(text)
            for rule, name in pairs:
                found[rule].append(name.replace("_", " "))
    return found


def record() -> dict[str, Any]:
    """Return the last recorded test results from a GPU, or {}."""
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
    """Return the text of the whole page."""
    found, ran = tests(), record()
    lines = ["# Rules of exchange", ""]
    where = "nothing is recorded"
    if ran:
        where = f"{ran['date']} on {ran['device']}, with {', '.join(ran['versions'])}"
    lines += [f"On a GPU, by `./dev gpu --record`: {where}.", ""]
    for protocol, rules in PROTOCOLS.items():
        lines += [f"## {protocol}", "", *table(rules, found, ran), ""]
    return "\n".join(lines).rstrip() + "\n"


def write(path: Path) -> None:
    """Write the page. Raise ValueError for a rule without a test and for a test without a rule."""
    known, found = {rule for rules in PROTOCOLS.values() for rule in rules}, set(tests())
    if known != found:
        raise ValueError(
            f"rules without a test: {sorted(known - found)}; "
            f"tests of unknown rules: {sorted(found - known)}"
        )
    path.write_text(page(), encoding="utf-8")
