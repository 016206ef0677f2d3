"""Put small faults into the core, one at a time, and see the C tests find them: `./dev mutate`.

    ./dev mutate                 a dozen mutants, always the same: each must be found
    ./dev mutate --sample 300    so many, drawn by --seed from all; goes on where it stopped
    ./dev mutate --sample 300 --record   the same, and leave the figures for docs/reliability.md
    ./dev mutate runtime/alloc/warm.c    all mutants of a file, or those of a sample with --sample
    ./dev mutate --alive         try those again that lived, after a test was added

A mutant is found when it does not end its tests, or one fails; what all of them let pass meets the
test of its file once more under AddressSanitizer and ThreadSanitizer. One of which the compiler
makes the same code is none. Those that live are read: each stands in tests/mutation/survivors.txt
with what it changes, or a test is missing; those that stand there meet the sanitizers alone again.
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

import operators

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
DOZEN, DOZEN_SEED = 12, 5
LIMIT = 30  # seconds that a test program may take
LEAST = 90.0

# Tests that take long come last, for what nothing else found.
LAST = ("test_purger", "test_policy", "test_pages", "test_pool", "stress", "test_conformance")


@dataclass(frozen=True)
class Mutant:
    """A fault in a file, by the text of its line, which moves less than its number."""

    file: str
    line: str
    what: str
    nth: int  # among those with the same line and fault
    faults: tuple[operators.Fault, ...] = field(compare=False)

    @property
    def key(self) -> str:
        return f"{self.file}: {self.line} ## {self.what} #{self.nth}"

    def lot(self, seed: int) -> str:
        """Where it stands when all are shuffled: the others do not matter."""
        return hashlib.sha256(f"{seed} {self.key}".encode()).hexdigest()


def mutants_of(path: Path) -> Iterator[Mutant]:
    source = path.read_text(encoding="utf-8")
    lines = source.splitlines()
    seen: Counter[tuple[str, str]] = Counter()
    for faults in operators.faults(source):
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


def explained() -> dict[str, str]:
    """Mutants that no test can find, and why: paragraphs of a key, and a reason below it."""
    reasons = {}
    for paragraph in EXPLAINED.read_text(encoding="utf-8").split("\n\n"):
        lines = [line for line in paragraph.splitlines() if line and not line.startswith("# ")]
        if lines:
            reasons[lines[0]] = " ".join(lines[1:])
    return reasons


# Building and running


def files_of(root: Path) -> set[Path]:
    """The sources that a build needs, relative to the root."""
    found = (path for part in PARTS for path in [root / part, *(root / part).rglob("*")])
    return {path.relative_to(root) for path in found if path.is_file()}


def copy_sources() -> None:
    """Only what differs, so that only that is built."""
    wanted = files_of(ROOT)
    for stale in files_of(TREE) - wanted:
        (TREE / stale).unlink()
    for file in wanted:
        copy = TREE / file
        copy.parent.mkdir(parents=True, exist_ok=True)
        if not copy.exists() or copy.read_bytes() != (ROOT / file).read_bytes():
            shutil.copyfile(ROOT / file, copy)


def prepare() -> None:
    """A copy of the sources to put faults into, built."""
    copy_sources()
    configure(BUILD, "-DMEMRT_TESTS=ON", "-DCMAKE_C_FLAGS=-O0 -w", "-DCMAKE_CXX_FLAGS=-O0")
    configure(OPTIMIZED, "-DCMAKE_C_FLAGS=-O2 -w -DNDEBUG")
    if not build(BUILD, ["all"]) or not build(OPTIMIZED, ["memrt_objects"]):
        raise SystemExit("the core does not build as it is")


def configure(where: Path, *settings: str) -> None:
    command = ["cmake", "-S", TREE, "-B", where, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=None"]
    subprocess.run([*command, *settings], check=True, stdout=subprocess.DEVNULL)


def build(where: Path, targets: list[str]) -> bool:
    command = ["cmake", "--build", str(where), "-j", str(os.cpu_count()), "--target", *targets]
    return subprocess.run(command, stdout=subprocess.DEVNULL).returncode == 0


def machine_code() -> dict[str, str]:
    """What the compiler makes of the core, by object."""
    if not build(OPTIMIZED, ["memrt_objects"]):
        return {}
    objects = sorted(OPTIMIZED.rglob("memrt_objects.dir/**/*.o"))
    return {str(each): hashlib.sha256(each.read_bytes()).hexdigest() for each in objects}


def test_programs() -> list[str]:
    listing = ["ctest", "--test-dir", str(BUILD), "--show-only=json-v1"]
    text = subprocess.run(listing, check=True, capture_output=True).stdout
    return [test["name"] for test in json.loads(text)["tests"]]


def members(session: int) -> list[int]:
    """Processes of a session that are not dead yet."""
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
    """Check puts its children into groups of their own; they stay in the session. Who is killed may
    have forked in the meantime."""
    while (left := members(leader)) != []:
        for process in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)


def passes(program: Path, limit: float, **environment: str) -> bool | None:
    """Whether a test program is content; None: it did not come to an end."""
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
    """The tree with the fault in it."""
    path = TREE / mutant.file
    source = path.read_text(encoding="utf-8")
    path.write_text(operators.apply(source, mutant.faults), encoding="utf-8")
    try:
        yield
    finally:
        path.write_text(source, encoding="utf-8")


@functools.cache
def sanitized(sanitizer: str) -> Path:
    """Where the tests are built under a sanitizer, which only what lives has to meet."""
    flags = f"-O1 -w -fsanitize={SANITIZED[sanitizer]} -fno-sanitize-recover=all"
    clang = ("-DCMAKE_C_COMPILER=clang", "-DCMAKE_CXX_COMPILER=clang++")
    flagged = (f"-DCMAKE_C_FLAGS={flags}", f"-DCMAKE_CXX_FLAGS={flags}")
    configure(WORK / sanitizer, "-DMEMRT_TESTS=ON", *clang, *flagged)
    return WORK / sanitizer


def is_content(sanitizer: str, program: str) -> bool | None:
    """Of the core as it is now; None: it does not compile."""
    where = sanitized(sanitizer)
    if not build(where, [program]):
        return None
    return passes(where / program, 4 * LIMIT, CK_FORK="no") is True


@functools.cache
def is_clean(sanitizer: str, program: str) -> bool:
    """Of the core as it should be, with no fault in it."""
    return is_content(sanitizer, program) is True


class Bench:
    """The test programs, in the order in which they are asked."""

    def __init__(self, thorough: bool) -> None:
        self.code, self.reasons = machine_code(), explained()
        names = set(test_programs())
        self.programs = [*sorted(names.difference(LAST)), *LAST]
        ctest = ["ctest", "--test-dir", str(BUILD), "-j", str(os.cpu_count())]
        if not thorough:
            ctest += ["-E", "|".join(f"{name}$" for name in LAST)]
        done = subprocess.run([*ctest, "--output-on-failure"], stdout=subprocess.PIPE, text=True)
        if done.returncode != 0:
            raise SystemExit(f"{done.stdout}\ntests fail on the core as it is")

    def order(self, file: str) -> list[str]:
        """The test of the file itself comes first."""
        return sorted(self.programs, key=lambda program: program != own_test(file))

    def judge_by_sanitizers(self, mutant: Mutant) -> str:
        """Of one that the tests let pass."""
        program = own_test(mutant.file)
        for sanitizer in SANITIZED if program in self.programs else ():
            if is_clean(sanitizer, program):
                with planted(mutant):
                    content = is_content(sanitizer, program)
                if content is False:
                    return f"killed: {program} under {sanitizer}"
        return "alive"

    def judge(self, mutant: Mutant) -> str:
        """One program after another, until one finds the fault."""
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
        """Of one that was alive: the quick answer first, and no other where a reason stands."""
        if self.is_same():
            return "same"
        return "alive" if mutant.key in self.reasons else self.judge(mutant)

    def judge_twice(self, mutant: Mutant) -> str:
        """What is known to live and was found is found again, unless it was by chance."""
        outcome = self.judge(mutant)
        chance = mutant.key in self.reasons and outcome not in ("alive", "same")
        return self.judge(mutant) if chance else outcome

    def try_out(self, mutant: Mutant, again: bool) -> str:
        with planted(mutant):
            outcome = self.judge_again(mutant) if again else self.judge_twice(mutant)
        return self.judge_by_sanitizers(mutant) if outcome == "alive" else outcome


# Results


def known() -> dict[str, str]:
    """What was found out before, of the sources as they are."""
    if not RESULTS.exists():
        return {}
    rows = (json.loads(line) for line in RESULTS.read_text(encoding="utf-8").splitlines())
    return {row["key"]: row["outcome"] for row in rows if row["source"] == digest(row["file"])}


def digest(file: str) -> str:
    path = ROOT / file
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.exists() else ""


def keep(mutant: Mutant, outcome: str) -> None:
    row = {"key": mutant.key, "file": mutant.file, "source": digest(mutant.file)}
    with RESULTS.open("a", encoding="utf-8") as file:
        file.write(json.dumps({**row, "outcome": outcome}, ensure_ascii=False) + "\n")


def run(mutants: list[Mutant], again: bool) -> dict[str, str]:
    """Outcomes by key; what is known is not tried again, unless it is alive and `again` is set."""
    outcomes = {key: how for key, how in known().items() if not (again and how == "alive")}
    todo = [mutant for mutant in mutants if mutant.key not in outcomes]
    if todo:
        prepare()
        bench = Bench(len(todo) > DOZEN)
    for number, mutant in enumerate(todo, 1):
        outcomes[mutant.key] = bench.try_out(mutant, again)
        keep(mutant, outcomes[mutant.key])
        print(f"{number}/{len(todo)} {outcomes[mutant.key]}: {mutant.key}", flush=True)
    return {mutant.key: outcomes[mutant.key] for mutant in mutants}


@dataclass(frozen=True)
class Verdict:
    """What became of the mutants that compile and change something."""

    outcomes: dict[str, str]
    reasons: dict[str, str]

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
        yield from (f"alive, and nobody says why: {key}" for key in self.unexplained)
        wrong = {key for key in self.reasons if self.outcomes.get(key, "alive") != "alive"}
        yield from (f"listed as alive, but found: {key}" for key in sorted(wrong))
        if self.percent < LEAST:
            yield f"{self.percent:.1f} % were found, fewer than {LEAST:.0f} %"


def leave_figures(verdict: Verdict, total: int, seed: int) -> None:
    sys.path.insert(0, str(ROOT / "tests" / "reliability"))
    import page

    about = (
        "Small faults put into the core one at a time, and whether the C tests found them. By "
        "`./dev mutate --sample N --record`; survivors are explained in "
        "`tests/mutation/survivors.txt`."
    )
    facts = {
        "mutants that the core has": total,
        "drawn": f"{len(verdict.outcomes)}, seed {seed}",
        "found by a failing test": verdict.count("killed"),
        "found by a test that did not end": verdict.count("did not end"),
        "not compiled": verdict.count("not compiled"),
        "of which the compiler makes the same code": verdict.count("same"),
        "alive, each explained": len(verdict.alive),
        "found, of the others": f"{verdict.percent:.1f} %",
    }
    page.record("mutation", "Mutation", about, facts)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", nargs="*", help="mutants of these files only")
    parser.add_argument("--sample", type=int, metavar="N", help="draw so many")
    parser.add_argument("--seed", type=int, default=DOZEN_SEED, help="of the draw")
    parser.add_argument("--alive", action="store_true", help="try again what was alive")
    parser.add_argument("--record", action="store_true", help="leave the figures for the docs")
    options = parser.parse_args()
    mutants, total = all_mutants(options.files), len(all_mutants([]))
    if options.sample or not options.files:
        mutants = drawn(mutants, options.sample or DOZEN, options.seed)
    if not mutants:
        raise SystemExit("there is nothing to change in these files")
    verdict = Verdict(run(mutants, options.alive), explained())
    found = list(verdict.faults())
    print(*found, f"{verdict.percent:.1f} % of {len(mutants)} mutants were found", sep="\n")
    if options.record and not found:
        leave_figures(verdict, total, options.seed)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
