"""Put small faults into the core, one at a time, and run the C tests: `./dev mutate`.

    ./dev mutate                 six mutants, always the same: each must be found or explained
    ./dev mutate --sample 300    300 mutants drawn by --seed; continues an interrupted run
    ./dev mutate --sample 300 --record   the same, and write the figures of docs/reliability.md
    ./dev mutate api/plain_table.c   all mutants of a file, or a sample with --sample
    ./dev mutate --alive         try survivors again, after a test was added

A mutant is found if a test fails or does not end. If all tests pass, the test of the mutated file
runs again under AddressSanitizer and ThreadSanitizer. A mutant that compiles to the same machine
code does not count.

Each survivor must be listed in tests/mutation/survivors.txt with a reason; otherwise a test is
missing. With --alive, listed survivors run under the sanitizers only.

No library replaces the tool: Mull needs a build for the exact version of clang, and runs survivors
under no sanitizer.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import functions
import operators
import python_operators

ROOT = Path(__file__).resolve().parents[2]
WORK = ROOT / "build" / "mutation"
TREE = WORK / "tree"
BUILD = WORK / "build"
OPTIMIZED = WORK / "optimized"
SANITIZED = {"AddressSanitizer": "address,undefined", "ThreadSanitizer": "thread"}
RESULTS = WORK / "results.jsonl"
EXPLAINED = Path(__file__).parent / "survivors.txt"
PARTS = ("CMakeLists.txt", "cmake", "api", "runtime", "tests/c", "tests/stress", "tests/abi",
         "tests/conformance", "tests/cuda")  # fmt: skip
FEW, FEW_SEED = 6, 5
LIMIT = 30  # seconds until a test program counts as hung
LEAST = 90.0

# Slow tests run after all other tests, unless the mutant is in their own file.
LAST = (
    *("test_stats_page", "test_heap", "test_scope", "test_conformance", "test_purger", "stress"),
    *("test_creators", "test_memory_limit", "test_peak", "test_fork_handlers", "test_pressure"),
    *("test_shield", "test_soft_limit"),
)


@dataclass(frozen=True)
class Mutant:
    """A mutant of a file, identified by the text of a line: line numbers change more often."""

    file: str
    line: str
    what: str
    nth: int  # counts mutants with the same line and fault, from 1
    faults: tuple[operators.Fault, ...] = field(compare=False)

    @property
    def key(self) -> str:
        return f"{self.file}: {self.line} ## {self.what} #{self.nth}"

    def lot(self, seed: int) -> str:
        """Return the sort key for a random draw. The key is independent of all other mutants."""
        return hashlib.sha256(f"{seed} {self.key}".encode()).hexdigest()


def mutants_of(path: Path) -> Iterator[Mutant]:
    source = path.read_text(encoding="utf-8")
    lines = source.splitlines()
    seen: Counter[tuple[str, str]] = Counter()
    find = python_operators.faults if path.suffix == ".py" else operators.faults
    for faults in find(source):
        line = lines[source.count("\n", 0, faults[0].start)].strip()
        what = faults[0].what
        seen[line, what] += 1
        yield Mutant(str(path.relative_to(ROOT)), line, what, seen[line, what], faults)


def all_mutants(files: Sequence[str]) -> list[Mutant]:
    paths = [ROOT / file for file in files]
    if not paths:
        paths = [path for top in ("runtime", "api") for path in (ROOT / top).rglob("*.[ch]")]
    return [mutant for path in sorted(paths) for mutant in mutants_of(path)]


def drawn(mutants: list[Mutant], count: int, seed: int) -> list[Mutant]:
    return sorted(mutants, key=lambda mutant: mutant.lot(seed))[:count]


def explained(path: Path = EXPLAINED) -> dict[str, str]:
    """Read the reasons of survivors: each paragraph has a mutant's key, and below the reason."""
    reasons = {}
    for paragraph in path.read_text(encoding="utf-8").split("\n\n"):
        lines = [line for line in paragraph.splitlines() if line and not line.startswith("# ")]
        if lines:
            reasons[lines[0]] = " ".join(lines[1:])
    return reasons


# Building and running


def files_of(root: Path) -> set[Path]:
    """Return the source files that a build needs, relative to the root."""
    found = (path for part in PARTS for path in [root / part, *(root / part).rglob("*")])
    return {path.relative_to(root) for path in found if path.is_file()}


def copy_sources() -> None:
    """Copy changed sources into the tree and delete stale files, for an incremental build."""
    wanted = files_of(ROOT)
    for stale in files_of(TREE) - wanted:
        (TREE / stale).unlink()
    for file in wanted:
        copy = TREE / file
        copy.parent.mkdir(parents=True, exist_ok=True)
        if not copy.exists() or copy.read_bytes() != (ROOT / file).read_bytes():
            shutil.copyfile(ROOT / file, copy)


def prepare() -> None:
    """Copy the sources for mutation, and build the copy without a fault."""
    copy_sources()
    debug = ("-DMEMRT_TESTS=ON", "-DMEMRT_DEBUG=ON")
    configure(BUILD, *debug, "-DCMAKE_C_FLAGS=-O0 -w", "-DCMAKE_CXX_FLAGS=-O0")
    configure(OPTIMIZED, "-DCMAKE_C_FLAGS=-O2 -w -DNDEBUG")
    if not build(BUILD, ["all"]) or not build(OPTIMIZED, ["memrt_objects"]):
        raise SystemExit("the core does not build without a mutant")


def configure(where: Path, *settings: str) -> None:
    command = ["cmake", "-S", TREE, "-B", where, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=None"]
    command.append("-DMEMRT_NRT=OFF")  # the library is compiled from the bindings
    subprocess.run([*command, *settings], check=True, stdout=subprocess.DEVNULL)


def build(where: Path, targets: list[str]) -> bool:
    command = ["cmake", "--build", str(where), "-j", str(os.cpu_count()), "--target", *targets]
    return subprocess.run(command, stdout=subprocess.DEVNULL).returncode == 0


def machine_code() -> dict[str, str]:
    """Build the core and return the hash of each object file, or {} if the build fails."""
    if not build(OPTIMIZED, ["memrt_objects"]):
        return {}
    objects = sorted(OPTIMIZED.rglob("memrt_objects.dir/**/*.o"))
    return {str(each): hashlib.sha256(each.read_bytes()).hexdigest() for each in objects}


def test_programs() -> list[str]:
    listing = ["ctest", "--test-dir", str(BUILD), "--show-only=json-v1"]
    text = subprocess.run(listing, check=True, capture_output=True).stdout
    return [test["name"] for test in json.loads(text)["tests"]]


def members(session: int) -> list[int]:
    """Return the processes of a session, without zombies."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            stat = (entry / "stat").read_text() if entry.name.isdigit() else ""
        except (FileNotFoundError, ProcessLookupError):
            continue
        fields = stat.rpartition(")")[2].split()
        if stat and fields[0] != "Z" and int(fields[3]) == session:
            found.append(int(entry.name))
    return found


def kill_session(leader: int) -> None:
    """Kill all processes of a session, repeatedly until none is left.

    Check puts child processes into process groups of their own, but in the same session. A process
    may fork before the signal arrives, hence the loop.
    """
    while (left := members(leader)) != []:
        for process in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)


def passes(program: Path, limit: float, **environment: str) -> bool | None:
    """Run a test program and return True if it passes, or None if it exceeds the limit."""
    process = subprocess.Popen(
        [program],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        env={**os.environ, **environment},
    )
    try:
        return process.wait(limit) == 0
    except subprocess.TimeoutExpired:
        return None
    finally:
        kill_session(process.pid)
        process.wait()


def own_test(file: str) -> str:
    return f"test_{Path(file).stem}"


@contextlib.contextmanager
def planted(mutant: Mutant) -> Iterator[None]:
    """Apply the mutant to the tree, and restore the source file at the end."""
    path = TREE / mutant.file
    source = path.read_text(encoding="utf-8")
    path.write_text(operators.apply(source, mutant.faults), encoding="utf-8")
    try:
        yield
    finally:
        path.write_text(source, encoding="utf-8")


@functools.cache
def sanitized(sanitizer: str) -> Path:
    """Configure the build under a sanitizer and return the folder. Only survivors need it."""
    flags = f"-O1 -w -fsanitize={SANITIZED[sanitizer]} -fno-sanitize-recover=all"
    clang = ("-DCMAKE_C_COMPILER=clang", "-DCMAKE_CXX_COMPILER=clang++")
    flagged = (f"-DCMAKE_C_FLAGS={flags}", f"-DCMAKE_CXX_FLAGS={flags}")
    configure(WORK / sanitizer, "-DMEMRT_TESTS=ON", *clang, *flagged)
    return WORK / sanitizer


def is_content(sanitizer: str, program: str) -> bool | None:
    """Run a test on the current tree under a sanitizer. Returns None if the build fails."""
    where = sanitized(sanitizer)
    if not build(where, [program]):
        return None
    cache = "0" if sanitizer == "AddressSanitizer" else "1"
    settings = {"CK_FORK": "no", "MEMRT_TOOLS": "0", "MEMRT_CACHE": cache}
    return passes(where / program, 4 * LIMIT, **settings) is True


@functools.cache
def is_clean(sanitizer: str, program: str) -> bool:
    """Return True if a test passes under a sanitizer on the core without a fault."""
    return is_content(sanitizer, program) is True


class Bench:
    """The test programs, in the order of their runs. The core without a fault must pass them."""

    def __init__(self, thorough: bool) -> None:
        self.code, self.reasons = machine_code(), explained()
        names = set(test_programs())
        self.programs = [*sorted(names.difference(LAST)), *LAST]
        ctest = ["ctest", "--test-dir", str(BUILD), "-j", str(os.cpu_count())]
        if not thorough:
            ctest += ["-E", "|".join(f"{name}$" for name in LAST)]
        done = subprocess.run([*ctest, "--output-on-failure"], stdout=subprocess.PIPE, text=True)
        if done.returncode != 0:
            raise SystemExit(f"{done.stdout}\ntests fail on the core without a mutant")

    def order(self, file: str) -> list[str]:
        """Return the test programs, with the test of the mutated file first."""
        return sorted(self.programs, key=lambda program: program != own_test(file))

    def judge_by_sanitizers(self, mutant: Mutant) -> str:
        """Judge a mutant that all tests let pass by its own test under the sanitizers."""
        program = own_test(mutant.file)
        for sanitizer in SANITIZED if program in self.programs else ():
            if is_clean(sanitizer, program):
                with planted(mutant):
                    content = is_content(sanitizer, program)
                if content is False:
                    return f"killed: {program} under {sanitizer}"
        return "alive"

    def judge(self, mutant: Mutant) -> str:
        """Run the test programs in sequence until a program finds the fault."""
        for program in self.order(mutant.file):
            if not build(BUILD, [program]):
                return "not compiled"
            outcome = passes(BUILD / program, 4 * LIMIT if program in LAST else LIMIT)
            if not outcome:
                return f"{'did not end' if outcome is None else 'killed'}: {program}"
        return "same" if self.is_same() else "alive"

    def is_same(self) -> bool:
        return machine_code() == self.code

    def judge_again(self, mutant: Mutant) -> str:
        """Judge an earlier survivor. Equal machine code or a listed reason needs no test run."""
        if self.is_same():
            return "same"
        return "alive" if mutant.key in self.reasons else self.judge(mutant)

    def judge_twice(self, mutant: Mutant) -> str:
        """Judge a mutant, and judge a listed survivor again if found: a find may be by chance."""
        outcome = self.judge(mutant)
        chance = mutant.key in self.reasons and outcome not in ("alive", "same")
        return self.judge(mutant) if chance else outcome

    def try_out(self, mutant: Mutant, again: bool) -> str:
        with planted(mutant):
            outcome = self.judge_again(mutant) if again else self.judge_twice(mutant)
        return self.judge_by_sanitizers(mutant) if outcome == "alive" else outcome


# Results


def current_rows(results: Path) -> list[dict[str, str]]:
    """Return the stored rows of functions that have not changed since."""
    if not results.exists():
        return []
    rows = (json.loads(line) for line in results.read_text(encoding="utf-8").splitlines())
    return [row for row in rows if row["code"] in codes(row["file"])]


def known(mutants: Sequence[Mutant], results: Path = RESULTS) -> dict[str, str]:
    """Return the stored outcomes by key, for functions that have not changed since."""
    code = {mutant.key: code_of(mutant) for mutant in mutants}
    rows = current_rows(results)
    return {row["key"]: row["outcome"] for row in rows if code.get(row["key"]) == row["code"]}


def digest(code: str) -> str:
    return hashlib.sha256(code.encode()).hexdigest()


@functools.cache
def codes(file: str) -> frozenset[str]:
    """Return the digests of the functions of a source file, and of the whole file."""
    path = ROOT / file
    if not path.exists():
        return frozenset()
    return frozenset(map(digest, functions.texts(path.read_text(encoding="utf-8"), path.suffix)))


def code_of(mutant: Mutant) -> str:
    """Return the digest of the function of a mutant, or of the file outside of functions."""
    path = ROOT / mutant.file
    source = path.read_text(encoding="utf-8")
    return digest(functions.text_around(source, path.suffix, mutant.faults[0].start))


def as_line(row: dict[str, str]) -> str:
    return json.dumps(row, ensure_ascii=False) + "\n"


def keep(mutant: Mutant, outcome: str, results: Path = RESULTS) -> None:
    row = {"key": mutant.key, "file": mutant.file, "code": code_of(mutant)}
    with results.open("a", encoding="utf-8") as file:
        file.write(as_line({**row, "outcome": outcome}))


def run(mutants: list[Mutant], again: bool) -> dict[str, str]:
    """Try out mutants and return the outcomes by key.

    Stored outcomes are reused, except for survivors if `again` is set.
    """
    outcomes = {key: how for key, how in known(mutants).items() if not (again and how == "alive")}
    todo = [mutant for mutant in mutants if mutant.key not in outcomes]
    if todo:
        prepare()
        bench = Bench(len(todo) > FEW)
    for number, mutant in enumerate(todo, 1):
        outcomes[mutant.key] = bench.try_out(mutant, again)
        keep(mutant, outcomes[mutant.key])
        print(f"{number}/{len(todo)} {outcomes[mutant.key]}: {mutant.key}", flush=True)
    return {mutant.key: outcomes[mutant.key] for mutant in mutants}


@dataclass(frozen=True)
class Verdict:
    """The outcomes of mutants by key, with the reasons of survivors and the required percentage."""

    outcomes: dict[str, str]
    reasons: dict[str, str]
    least: float = LEAST

    def count(self, outcome: str) -> int:
        return sum(how.startswith(outcome) for how in self.outcomes.values())

    @property
    def alive(self) -> list[str]:
        return [key for key, how in self.outcomes.items() if how == "alive"]

    @property
    def unexplained(self) -> list[str]:
        return [key for key in self.alive if key not in self.reasons]

    @property
    def percent(self) -> float:
        found = self.count("killed") + self.count("did not end")
        return 100 * found / max(1, found + len(self.alive))

    def faults(self) -> Iterator[str]:
        yield from (f"survivor without an explanation: {key}" for key in self.unexplained)
        wrong = {key for key in self.reasons if self.outcomes.get(key, "alive") != "alive"}
        yield from (f"explained survivor was found: {key}" for key in sorted(wrong))
        if self.percent < self.least:
            yield f"mutants found must be {self.least:.0f} % or more, got {self.percent:.1f} %"


def record(name: str, title: str, about: str, verdict: Verdict, mutants: int, seed: int) -> None:
    """Write the figures of a run into the docs."""
    sys.path.insert(0, str(ROOT / "tests" / "reliability"))
    import page

    facts = {
        "mutants": mutants,
        "drawn": f"{len(verdict.outcomes)}, seed {seed}",
        "found by a failing test": verdict.count("killed"),
        "found by a time limit": verdict.count("did not end"),
        "not compiled": verdict.count("not compiled"),
        "with the same machine code": verdict.count("same"),
        "survivors": len(verdict.alive),
        "survivors with an explanation": len(verdict.alive) - len(verdict.unexplained),
        page.FOUND: f"{verdict.percent:.1f} %",
    }
    page.record(name, title, about, facts)


def parser_of(program: str, about: str | None, seed: int) -> argparse.ArgumentParser:
    """Return a parser with the options that both tools of mutation have."""
    parser = argparse.ArgumentParser(
        prog=program, description=about, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", nargs="*", help="mutants of these files only")
    parser.add_argument("--sample", type=int, metavar="N", help="number of mutants to draw")
    parser.add_argument("--seed", type=int, default=seed, help="seed of the draw")
    parser.add_argument("--alive", action="store_true", help="try survivors again")
    parser.add_argument("--record", action="store_true", help="write the figures of the docs")
    return parser


def main() -> int:
    options = parser_of("./dev mutate", __doc__, FEW_SEED).parse_args()
    mutants, total = all_mutants(options.files), len(all_mutants([]))
    if options.sample or not options.files:
        mutants = drawn(mutants, options.sample or FEW, options.seed)
    if not mutants:
        raise SystemExit(f"no mutants in {', '.join(options.files) or 'the core'}")
    verdict = Verdict(run(mutants, options.alive), explained())
    found = list(verdict.faults())
    print(*found, f"{verdict.percent:.1f} % of {len(mutants)} mutants were found", sep="\n")
    if options.record and not found:
        about = (
            "Mutants of the core, each with one small fault, and the number found by the C tests. "
            "By `./dev mutate --sample N --record`; `tests/mutation/survivors.txt` explains the "
            "survivors."
        )
        record("mutation", "Mutation", about, verdict, total, options.seed)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
