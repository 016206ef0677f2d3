"""Check models of memrt's protocols in every interleaving. `./dev verify models` calls the script.

    ./dev verify models            run the Spin models, with each seeded bug; also the weak-memory
                                   models, if GENMC names the checker or genmc is on the path
    ./dev verify models find tiny  run only the named weak-memory models
    ./dev verify models --orders   also weaken each memory order of the sources, one at a time: a
                                   model must fail for each order, except those in
                                   tests/models/orders.txt
    ./dev verify models --record   like --orders, and write the figures for docs/reliability.md

The weak-memory models, tests/models/*/*.c, include memrt's unchanged sources over C11 atomics.
GenMC (https://plv.mpi-sws.org/genmc) explores the models under the RC11 memory model. No
distribution packages GenMC: build version 0.10 or newer, and set GENMC=/path/to/genmc.

No library weakens the memory orders of sources: Spin and GenMC check only the given models.
"""

from __future__ import annotations

import argparse
import functools
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HERE = ROOT / "tests" / "models"
WORK = ROOT / "build" / "models"
SPIN = {"references": 4, "peak": 7, "counters": 4}  # Spin models and their numbers of seeded bugs
LIMIT = 3600  # seconds for one model, on a loaded machine

FLAGS = (
    *("-D_GNU_SOURCE", "-DMEMRT_C11_ATOMICS=1", "-DMEMRT_PROBES=0"),
    *("-std=gnu11", "-Wno-everything", "-I.", "-Iapi/include"),
)
COUNTING = ("stats", "peak")  # folders of models with statistics; all others have no counters

# Operations with a memory order, and their weaker forms.
WEAKER = {
    "load_acquire": "load_relaxed",
    "store_release": "store_relaxed",
    "fetch_add_acquire": "fetch_add_relaxed",
    "fetch_add_release": "fetch_add_relaxed",
    "fetch_sub1_release": "fetch_sub1_relaxed",
    "cas_acquire": "cas_relaxed",
    "cas_release": "cas_relaxed",
    "word_equals_acquire": "word_equals",
    "own_add_release": "own_add",
    "own_store_release": "store_relaxed",
    "own_take_release": "own_take",
    "raise_release": "raise_relaxed",
}
EVERY_ORDER = "*"  # in orders.txt, in place of a line of code: all orders of the file
ORDERED = re.compile(rf"\bmemrt__({'|'.join(WEAKER)})\(")


# Spin


def run_spin(model: str, fault: int) -> bool:
    """Run Spin on a model with one seeded bug, or none for 0. Return True if there is no error."""
    folder = WORK / f"spin-{model}-{fault}"
    folder.mkdir(parents=True, exist_ok=True)
    for command in (
        ["spin", f"-DFAULT={fault}", "-a", str(HERE / f"{model}.pml")],
        ["cc", "-O1", "-w", "-DSAFETY", "-o", "pan", "pan.c"],
    ):
        subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)
    explored = subprocess.run(["./pan", "-m100000"], cwd=folder, capture_output=True, text=True)
    errors = re.search(r"errors: (\d+)", explored.stdout)
    if errors is None or "max search depth too small" in explored.stdout:
        raise SystemExit(f"spin did not explore {model}:\n{explored.stdout}{explored.stderr}")
    return errors.group(1) == "0"


def check_spin(model: str, faults: int) -> bool:
    good = run_spin(model, 0)
    print(f"spin: {model}: {'no error' if good else 'ERROR'}", flush=True)
    for fault in range(1, faults + 1):
        missed = run_spin(model, fault)
        print(f"spin: {model}: fault {fault}: {'NOT FOUND' if missed else 'found'}", flush=True)
        good = good and not missed
    return good


# GenMC


@dataclass(frozen=True)
class Outcome:
    """The checker's result: an error or an empty string, and the number of executions."""

    error: str
    executions: int


def source_of(model: str) -> str:
    """Return the path of a model's source, relative to the project's root."""
    (path,) = HERE.glob(f"*/{model}.c")
    return str(path.relative_to(ROOT))


def flags_of(model: str) -> tuple[str, ...]:
    counting = Path(source_of(model)).parent.name in COUNTING
    return (*FLAGS, f"-DMEMRT_COUNTERS={int(counting)}")


@functools.cache
def uses(model: str) -> frozenset[str]:
    """Return the source files of a model, including headers."""
    command = ["cc", *FLAGS, "-DMEMRT_COUNTERS=1", "-M", source_of(model)]
    listing = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return frozenset(os.path.normpath(name) for name in listing.replace("\\\n", " ").split())


def digest(version: str, model: str, root: Path) -> str:
    """Return a hash over the checker's version, the model, and its sources under `root`."""
    text = hashlib.sha256(f"{version} {model}".encode())
    for file in sorted(uses(model)):
        if (root / file).is_file():
            text.update((root / file).read_bytes())
    return text.hexdigest()


class Checker:
    """The GenMC executable, with its version."""

    def __init__(self, path: str) -> None:
        self.path = path
        shown = subprocess.run([path, "--version"], capture_output=True, text=True, check=True)
        version = re.search(r"GenMC v\S+(?: \(commit #\w+\))?", shown.stdout)
        if version is None:
            raise SystemExit(f"{path} must be GenMC, but prints no version of GenMC")
        self.version = version.group()

    def explore(self, model: str, root: Path) -> Outcome:
        """Run a model over the sources under `root`. Reuse a stored result for equal sources."""
        kept = WORK / "outcomes" / digest(self.version, model, root)
        if kept.exists():
            count, _, error = kept.read_text(encoding="utf-8").partition(" ")
            return Outcome(error, int(count))
        outcome = self.run(model, root)
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_text(f"{outcome.executions} {outcome.error}", encoding="utf-8")
        return outcome

    def run(self, model: str, root: Path) -> Outcome:
        command = [self.path, "--rc11", "--disable-estimation", "--", *flags_of(model)]
        command.append(source_of(model))
        done = subprocess.run(
            command, cwd=root, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=LIMIT
        )
        text = done.stdout.decode(errors="replace")
        error = re.search(r"^Error: (.*?)!?$", text, re.MULTILINE)
        count = re.search(r"complete executions explored: (\d+)", text)
        if count is None or (error is None and "No errors were detected" not in text):
            raise SystemExit(f"{model} was not explored:\n{text[-2000:]}")
        return Outcome(error.group(1) if error else "", int(count.group(1)))


def find_checker() -> Checker | None:
    path = os.environ.get("GENMC") or shutil.which("genmc")
    return Checker(path) if path else None


def all_models() -> list[str]:
    return sorted(path.stem for path in HERE.glob("*/*.c"))


def undefined_variables(model: str) -> list[str]:
    """Return the variables without a definition. The checker needs each variable, but only the
    functions that are called. A function without a declaration is an error.
    """
    flags = (*flags_of(model), "-DMODEL_HAS_CONDITIONS", "-Werror=implicit-function-declaration")
    flags += ("-S", "-emit-llvm", "-o", "-")
    code = subprocess.check_output(["clang", *flags, source_of(model)], cwd=ROOT, text=True)
    return re.findall(r"^@(\S+) = .*\bexternal .*\b(?:global|constant)\b", code, re.MULTILINE)


def check_variables() -> bool:
    """Check without the checker that it can load each model."""
    missing = {model: undefined_variables(model) for model in all_models()}
    for model, names in missing.items():
        if names:
            print(f"{source_of(model)} must define {', '.join(names)}")
    return not any(missing.values())


def explore_all(checker: Checker, models: list[str]) -> dict[str, Outcome]:
    outcomes = {}
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        explored = pool.map(lambda model: checker.explore(model, ROOT), models)
        for model, outcome in zip(models, explored, strict=True):
            outcomes[model] = outcome
            found = outcome.error or f"no error in {outcome.executions} executions"
            print(f"{checker.version}: {model}: {found}", flush=True)
    return outcomes


# Orders


@dataclass(frozen=True)
class Order:
    """An operation with a memory order, at a position in a source file."""

    file: str
    line: int
    code: str
    operation: str
    at: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.code}"


def orders() -> Iterator[Order]:
    paths = [path for top in ("runtime", "api") for path in (ROOT / top).rglob("*.[ch]")]
    for path in sorted(paths):
        text = path.read_text(encoding="utf-8")
        for match in ORDERED.finditer(text):
            line = text.count("\n", 0, match.start())
            code = text.splitlines()[line].strip()
            file = str(path.relative_to(ROOT))
            if file != "runtime/base/atomics.h":
                yield Order(file, line + 1, code, match.group(1), match.start(1))


def without(order: Order) -> Path:
    """Copy the sources with one memory order weakened, and return the folder of the copy."""
    WORK.mkdir(parents=True, exist_ok=True)
    tree = Path(tempfile.mkdtemp(prefix="tree-", dir=WORK))
    for part in ("api", "runtime", "tests/models"):
        shutil.copytree(ROOT / part, tree / part)
    text = (tree / order.file).read_text(encoding="utf-8")
    end = order.at + len(order.operation)
    weaker = text[: order.at] + WEAKER[order.operation] + text[end:]
    (tree / order.file).write_text(weaker, encoding="utf-8")
    return tree


def needed_by(order: Order, models: Sequence[str], checker: Checker) -> tuple[str, str]:
    """Return the first model that fails without the order, and its error, or two empty strings."""
    tree = without(order)
    try:
        for model in models:
            error = checker.explore(model, tree).error if order.file in uses(model) else ""
            if error:
                return model, error
    finally:
        shutil.rmtree(tree)
    return "", ""


def needs(models: Sequence[str], checker: Checker) -> Iterator[tuple[str, str]]:
    """Yield needed_by() of each order. As many orders at a time as there are processors."""
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        yield from pool.map(lambda order: needed_by(order, models, checker), orders())


def excused() -> dict[tuple[str, str], str]:
    """Return the reasons of orders.txt by file and line of code, or by file and EVERY_ORDER."""
    text = (HERE / "orders.txt").read_text(encoding="utf-8")
    paragraphs = [p.splitlines() for p in text.split("\n\n") if not p.startswith("#")]
    return {(file, code): " ".join(reason) for file, code, *reason in paragraphs}


def entry_of(order: Order) -> tuple[str, str]:
    """Return the key of the entry for an order in orders.txt: the line, or else the whole file."""
    line = (order.file, order.code)
    return line if line in excused() else (order.file, EVERY_ORDER)


def check_orders(checker: Checker, outcomes: dict[str, Outcome]) -> list[tuple[str, str, str]]:
    """Weaken each order in turn. Return rows of order, model that fails, and error or reason.

    Failure: an order that no model needs, or an unnecessary entry in orders.txt, gives an empty
    list. An entry for a whole file excuses only the orders of the file that no model needs.
    """
    quickest = sorted(outcomes, key=lambda model: outcomes[model].executions)
    reasons, rows, good = excused(), [], True
    unused = set(reasons)
    for order, (model, error) in zip(orders(), needs(quickest, checker), strict=True):
        entry = entry_of(order)
        reason = reasons.get(entry, "")
        if model and entry[1] != EVERY_ORDER:
            good = False
            print(f"{order}: is listed, but needed by {model}")
        elif not model and not reason:
            good = False
            print(f"{order}: NOT NEEDED")
        else:
            print(f"{order}: {model or 'listed'}: {error or reason}", flush=True)
        if not model:
            unused.discard(entry)
        rows.append((f"`{order.file}`: `{order.code}`", model or "none", error or reason))
    for file, code in sorted(unused):
        print(f"{file}: {code}: is listed, but excuses no order")
    return rows if good and not unused else []


def leave_figures(checker: Checker, outcomes: dict[str, Outcome], rows: list) -> None:
    sys.path.insert(0, str(ROOT / "tests" / "reliability"))
    import page

    about = (
        "The sources of the runtime over C11 atomics, explored in every order under the memory "
        "model RC11. A second pass weakens each memory order in turn: a model must fail. By "
        "`./dev verify models --record`. The gate explores the same protocols as models of Spin."
    )
    facts: dict[str, object] = {"checker": checker.version}
    facts |= {f"executions of `{m}`, no error": o.executions for m, o in outcomes.items()}
    facts["weakened orders"] = len(rows)
    columns = ("order", "model that fails without the order", "error, or reason for no error")
    page.record("weak-memory", "Weak memory", about, facts, columns, rows)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("models", nargs="*", help="weak-memory models to run; default: all")
    parser.add_argument("--orders", action="store_true", help="also weaken each memory order")
    parser.add_argument("--record", action="store_true", help="write the figures for the docs")
    options = parser.parse_args()
    spun = [] if options.models else [check_spin(*model) for model in SPIN.items()]
    if not all(spun) or not check_variables():
        return 1
    checker = find_checker()
    if checker is None:
        print(
            "GenMC was not found, weak-memory models were skipped: see ./dev verify models --help"
        )
        return 1 if options.record or options.orders or options.models else 0
    outcomes = explore_all(checker, options.models or all_models())
    if any(outcome.error for outcome in outcomes.values()):
        return 1
    if not (options.orders or options.record):
        return 0
    rows = check_orders(checker, outcomes)
    if rows and options.record:
        leave_figures(checker, outcomes, rows)
    return 0 if rows else 1


if __name__ == "__main__":
    sys.exit(main())
