"""Mutation of the bindings: `./dev mutate --bindings`.

    ./dev mutate --bindings                 ten mutants, always the same: each must be killed
    ./dev mutate --bindings --sample 300    300 mutants drawn by --seed; continues an earlier run
    ./dev mutate --bindings --sample 300 --record   the same, and write the figures of the docs
    ./dev mutate --bindings --alive         try unexplained survivors again, for longer
    ./dev mutate --bindings --alive FILE --tests TEST   the same with the given tests only, for
                                            example new tests that the map lacks
    ./dev mutate --bindings FILE ...        mutants of some files

Each mutant is one small fault in a C file of bindings/src or a Python file of bindings/memrt, in a
copy of the tree with a separate virtual environment. The tests that reach the line run, shortest
test file first, until a test fails. `./dev coverage bindings` makes the map of lines and tests.
Without the map, tests/mutation/bindings_tests.json names the test files that reach a source file.
A survivor without a reason in tests/mutation/bindings_survivors.txt means a missing test.

The outcomes are in docs/reliability/mutants/bindings.jsonl, to commit, so that a run of hours
continues in another clone. A change of a function makes the outcomes of its mutants void.

No library mutates both languages and the installed wheel: mutmut mutates a tree of Python sources,
and Mull a program of clang.
"""

from __future__ import annotations

import ast
import collections
import functools
import itertools
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "suites"))
import environment
import mutate
import operators
from mutate import ROOT, Mutant, Verdict

WORK = ROOT / "build" / "bindings-mutation"
RESULTS = ROOT / "docs" / "reliability" / "mutants" / "bindings.jsonl"
COVERAGE = ROOT / "build" / "bindings-coverage"
EXPLAINED = Path(__file__).parent / "bindings_survivors.txt"
TESTS_OF = Path(__file__).parent / "bindings_tests.json"
PARTS = ("CMakeLists.txt", "pyproject.toml", "README.md", "LICENSE", "cmake", "api", "runtime",
         "tests/conformance", "bindings")  # fmt: skip
FEW, FEW_SEED = 10, 1
LEAST = 85.0
AT_ONCE = 60  # tests of the first call of pytest
BUDGET = 120  # seconds for the tests of one mutant, without tests that hang
BUDGET_AGAIN = 600  # the same for a survivor that is tried again
FAILED = re.compile(r"^(?:FAILED|ERROR) (tests/\S+?::.+?)(?: - |$)", re.MULTILINE)
PYTHON = f"python{sys.version_info[0]}.{sys.version_info[1]}"
NOT_REACHED = "alive: not reached"
ELSEWHERE = "tests/numba/"  # tests in an environment with Numba
RUNNING = re.compile(r"^(tests/[^\s:]+\.py::\S+(?: [^\s]*\])?)(?P<rest>.*)$", re.MULTILINE)
NUMBA_ONLY = re.compile(  # tested by ./dev suites numba
    r"bindings/(memrt/numba/(?!refprune/(engine|solver|gaps|classes|flow|ir)\.py)"
    r"|memrt/commands/(refprune|compile)|src/(types/nrt_|numba/))"
)


def sources() -> list[str]:
    """The files to mutate."""
    found = [*(ROOT / "bindings" / "src").rglob("*.[ch]")]
    for package in ("memrt", "pytest_memrt"):
        found += (ROOT / "bindings" / package).rglob("*.py")
    names = sorted(str(path.relative_to(ROOT)) for path in found)
    return [name for name in names if not NUMBA_ONLY.match(name)]


def line_of(mutant: Mutant) -> int:
    source = (ROOT / mutant.file).read_text(encoding="utf-8")
    return source.count("\n", 0, mutant.faults[0].start) + 1


def statement_lines(source: str, line: int) -> range:
    """Yield the lines of the innermost statement around a line; of compound statements the head."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.stmt):
            body = getattr(node, "body", None)
            end = max(node.lineno, body[0].lineno - 1 if body else node.end_lineno or 0)
            if node.lineno <= line <= end:
                found.append(range(node.lineno, end + 1))
    return max(found, key=lambda lines: lines.start, default=range(line, line + 1))


def failed_test(log: str) -> str | None:
    """Return the failed test, or the test at the end of the process; None before the first test."""
    failed = FAILED.search(log)
    if failed is not None:
        return failed[1]
    running = list(RUNNING.finditer(log))
    if not running or "PASSED" in running[-1]["rest"]:
        return None
    return running[-1][1]


def is_there(test: str) -> bool:
    """Return whether the file of a recorded test still contains the test."""
    file, _, name = test.partition("::")
    function = f"def {name.rpartition('::')[2]}("
    return (ROOT / file).exists() and function in (ROOT / file).read_text(encoding="utf-8")


def find_tests_by_name(source: str) -> list[str]:
    """Return the test files that mention an unmeasured source file in their name or text."""
    name = re.compile(rf"\b{re.escape(Path(source).stem.strip('_'))}\b")
    tests = (ROOT / "tests" / "python").rglob("test_*.py")
    found = [path for path in tests if name.search(path.name + path.read_text(encoding="utf-8"))]
    return [str(path.relative_to(ROOT)) for path in found]


# --- Which tests reach a line. ---


class Reach:
    """Finds the tests that reach a line, the most promising tests first."""

    def __init__(self, given: Sequence[str] = ()) -> None:
        """Read the map. `given` are the tests of all mutants, in place of those of the map."""
        self._given = [*given]
        results = COVERAGE / "results.json"
        found = json.loads(results.read_text(encoding="utf-8")) if results.exists() else {}
        self._seconds: dict[str, float] = found.get("seconds", {})
        lines = found.get("c", {})  # also of meet.py, which pytest does not run
        self._c: dict[str, dict[str, list[int]]] = {
            test: files
            for test, files in lines.items()
            if Path(test).name.startswith("test_") and not test.startswith(ELSEWHERE)
        }
        self.is_known = bool(found)
        self._by_file: dict[str, list[str]] = {}
        if TESTS_OF.exists():
            self._by_file = json.loads(TESTS_OF.read_text(encoding="utf-8"))

    def _order(self, source: str, tests: Iterable[str]) -> list[str]:
        own = f"test_{Path(source).stem.strip('_')}."
        return sorted(set(tests), key=lambda test: (own not in test, self._seconds.get(test, 9.0)))

    def seconds(self, tests: Iterable[str]) -> float:
        return sum(self._seconds.get(file, 20.0) for file in {t.partition("::")[0] for t in tests})

    def find_tests_of(self, mutant: Mutant) -> list[str]:
        """Return test files or test names, as pytest takes them."""
        if self._given:
            return self._given
        if not self._measured(mutant.file):
            named = [test for test in self._by_file.get(mutant.file, []) if (ROOT / test).exists()]
            return named or self._order(mutant.file, find_tests_by_name(mutant.file))[:8]
        return self._c_tests(mutant) if mutant.file.endswith((".c", ".h")) else self._python(mutant)

    def _measured(self, source: str) -> bool:
        """Whether the coverage run knew the file."""
        if source.endswith((".c", ".h")):
            return any(source in files for files in self._c.values())
        return self.is_known and bool(self._contexts(source))

    def _c_tests(self, mutant: Mutant) -> list[str]:
        line = line_of(mutant)
        for each in range(line, line - 4, -1):
            found = [t for t, files in self._c.items() if each in files.get(mutant.file, ())]
            if found:
                return self._order(mutant.file, found)
        return []

    @functools.cached_property
    def _package(self) -> object:
        from coverage import CoverageData

        data = CoverageData(basename=str(COVERAGE / "package.coverage"))
        data.read()
        return data

    @functools.cache  # noqa: B019 - one object for the whole run
    def _contexts(self, file: str) -> dict[int, list[str]]:
        data, found = self._package, collections.defaultdict[int, list[str]](list)
        for environment_name in ("venv", "clients-venv"):
            site = COVERAGE / environment_name / "lib" / PYTHON / "site-packages"
            name = str(site / Path(file).relative_to("bindings"))
            for line, contexts in data.contexts_by_lineno(name).items():  # type: ignore[attr-defined]
                found[line] += [each for each in contexts if not each.startswith(ELSEWHERE)]
        return dict(found)

    def _python(self, mutant: Mutant) -> list[str]:
        contexts = self._contexts(mutant.file)
        source = (ROOT / mutant.file).read_text(encoding="utf-8")
        lines = statement_lines(source, line_of(mutant))
        found = {context for line in lines for context in contexts.get(line, ())}
        named = {context.replace("|", "::") for context in found if context.count("|") == 1}
        named = {name for name in named if is_there(name)}
        # Every process that imports memrt runs the lines outside of functions.
        if named and is_in_function(source, line_of(mutant)):
            order = self._order(mutant.file, {name.partition("::")[0] for name in named})
            return sorted(named, key=lambda name: order.index(name.partition("::")[0]))
        # coverage.py misses lines that only run in starting threads and some child processes.
        everything = {context for each in contexts.values() for context in each if "|" in context}
        return self._order(mutant.file, {context.partition("|")[0] for context in everything})


def is_in_function(source: str, line: int) -> bool:
    """Whether the body of a function contains a line."""
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    return any(
        node.body[0].lineno <= line <= (node.end_lineno or 0)
        for node in ast.walk(ast.parse(source))
        if isinstance(node, functions)
    )


def write_test_map(reach: Reach) -> None:
    """Write which test files reach each source file, for runs without a map of lines."""
    found = {}
    for source in sources():
        if source.endswith((".c", ".h")):
            files = [test for test, lines in reach._c.items() if lines.get(source)]
        else:
            contexts = itertools.chain.from_iterable(reach._contexts(source).values())
            files = [each.partition("|")[0] for each in contexts if "|" in each]
        found[source] = reach._order(source, files)[:8]
    TESTS_OF.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


# --- A copy of the tree to plant faults in. ---


def run(*command: object, **options: object) -> bool:
    texts = [str(each) for each in command]
    log = WORK / "build.log"
    with log.open("w") as file:
        done = subprocess.run(texts, stdout=file, stderr=subprocess.STDOUT, check=False, **options)  # type: ignore[call-overload]
    return bool(done.returncode == 0)


class Workshop:
    """A copy of the sources, built and installed into a virtual environment."""

    def __init__(self, number: int, budget: int = BUDGET) -> None:
        self.budget = budget
        self.folder = WORK / f"worker-{number}"
        self.tree, self.cmake = self.folder / "tree", self.folder / "cmake"
        self.python = self.folder / "venv" / "bin" / "python"
        self._stamp = itertools.count(1)
        self.unstable: set[str] = set()  # tests that fail without a fault
        self.stable: set[str] = set()

    def prepare(self) -> None:
        self._copy()
        if not self.python.exists():
            done = run(sys.executable, "-m", "venv", "--without-pip", self.folder / "venv")
            assert done, "cannot create the virtual environment"
        self.site = site_packages(self.python)
        others = map(site_packages, (Path(sys.executable), environment.clients()))
        (self.site / "others.pth").write_text("".join(f"{each}\n" for each in others))
        pip, settings = (sys.executable, "-m", "pip"), []
        for setting in (f"build-dir={self.cmake}", "install.strip=false",
                        "cmake.define.CMAKE_BUILD_WITH_INSTALL_RPATH=ON"):  # fmt: skip
            settings += ["--config-settings", setting]
        wheels = self.folder / "wheel"
        shutil.rmtree(wheels, ignore_errors=True)
        built = run(
            *(*pip, "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", wheels),
            *(*settings, "."), cwd=self.tree, env={**os.environ, "CMAKE_GENERATOR": "Ninja"},
        )  # fmt: skip
        install = ("install", "--force-reinstall", "--no-deps", "--quiet", "--no-compile")
        if not built or not run(*pip, "--python", self.python, *install, *wheels.glob("*.whl")):
            raise SystemExit(f"the bindings do not build: see {WORK / 'build.log'}")
        assert run("ninja", "-C", self.cmake, "_memrt")
        (self.built,) = self.cmake.glob("_memrt.*.so")
        self.installed = self.site / "memrt" / self.built.name
        self._replace(self.installed, self.built.read_bytes())
        self.original = self.built.read_bytes()

    def _copy(self) -> None:
        for part in PARTS:
            found = [ROOT / part, *(ROOT / part).rglob("*")]
            for path in (path for path in found if path.is_file() and path.suffix != ".pyc"):
                copy = self.tree / path.relative_to(ROOT)
                copy.parent.mkdir(parents=True, exist_ok=True)
                if not copy.exists() or copy.read_bytes() != path.read_bytes():
                    shutil.copyfile(path, copy)

    def _replace(self, path: Path, content: bytes) -> None:
        """Write a new file: a process may have mapped the old file, and caches compare times."""
        path.unlink(missing_ok=True)
        path.write_bytes(content)
        os.utime(path, (2_000_000_000 + next(self._stamp),) * 2)

    def judge(self, mutant: Mutant, reach: Reach) -> str:
        """Return the result of the tests for one fault."""
        tests = reach.find_tests_of(mutant)
        if mutant.file.endswith((".c", ".h")):
            return self._judge_c(mutant, tests, reach)
        if not tests:
            return NOT_REACHED
        path = self.site / Path(mutant.file).relative_to("bindings")
        source = path.read_text(encoding="utf-8")
        shutil.rmtree(path.parent / "__pycache__", ignore_errors=True)
        self._replace(path, operators.apply(source, mutant.faults).encode())

        def without() -> Iterable[None]:
            self._replace(path, source.encode())
            yield
            self._replace(path, operators.apply(source, mutant.faults).encode())

        try:
            return self._ask(tests, reach, without)
        finally:
            self._replace(path, source.encode())

    def _judge_c(self, mutant: Mutant, tests: list[str], reach: Reach) -> str:
        path = self.tree / mutant.file
        source = path.read_text(encoding="utf-8")
        path.write_text(operators.apply(source, mutant.faults), encoding="utf-8")
        try:
            built = run("ninja", "-C", self.cmake, "_memrt")
        finally:
            path.write_text(source, encoding="utf-8")
        if not built:
            return "not compiled"
        faulty = self.built.read_bytes()
        if faulty == self.original:
            return "same"
        if not tests:
            return NOT_REACHED
        self._replace(self.installed, faulty)

        def without() -> Iterable[None]:
            self._replace(self.installed, self.original)
            yield
            self._replace(self.installed, faulty)

        try:
            return self._ask(tests, reach, without)
        finally:
            self._replace(self.installed, self.original)

    def _ask(self, tests: list[str], reach: Reach, without: Callable[[], Iterable[None]]) -> str:
        """Run tests until a test fails twice with the fault and passes without the fault."""
        spent = 0.0
        doubtful: set[str] = set()  # failed once with the fault, and then passed
        for part in (tests[:AT_ONCE], tests[AT_ONCE:]):
            limit = 60 + 3 * reach.seconds(part)
            while part and spent < self.budget:
                outcome, failed, seconds = self._pytest(part, limit, doubtful)
                spent += seconds
                if outcome == "passed":
                    break
                if failed is None:  # no test finished: an import of the tests is broken
                    if outcome == "killed" and not self._collects_without(part, limit, without):
                        raise SystemExit(
                            f"cannot collect {len(part)} tests, starting with {part[0]}"
                        )
                    return f"{outcome}: {part[0]}"
                if self._pytest([failed], limit)[0] == "passed":
                    if self._fails_with_its_file(failed, limit, without):
                        return f"{outcome}: {failed}"
                    doubtful.add(failed)
                elif failed in self.stable or self._passes_without(failed, limit, without):
                    self.stable.add(failed)
                    return f"{outcome}: {failed}"
                else:
                    self.unstable.add(failed)
        return "alive"

    def _fails_with_its_file(
        self, test: str, limit: float, without: Callable[[], Iterable[None]]
    ) -> bool:
        """Whether the file of the test fails because of the fault, as earlier tests leave state."""
        file = test.partition("::")[0]
        return self._pytest([file], limit)[0] != "passed" and self._passes_without(
            file, limit, without
        )

    def _passes_without(
        self, test: str, limit: float, without: Callable[[], Iterable[None]]
    ) -> bool:
        passed = False
        for _ in without():
            passed = self._pytest([test], limit)[0] == "passed"
        return passed

    def _collects_without(
        self, tests: Sequence[str], limit: float, without: Callable[[], Iterable[None]]
    ) -> bool:
        passed = False
        for _ in without():
            passed = self._pytest(["--collect-only", *tests], limit)[0] == "passed"
        return passed

    def _pytest(
        self, tests: Sequence[str], limit: float, doubtful: Iterable[str] = ()
    ) -> tuple[str, str | None, float]:
        """Return the outcome, the failed test and the seconds."""
        deselect = [f"--deselect={test}" for test in {*self.unstable, *doubtful}]
        command = [self.python, "-m", "pytest", "-x", "-v", "-p", "no:cacheprovider", "-rfE"]
        environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
        times = os.times()
        log = self.folder / "pytest.log"
        with log.open("w") as file:
            process = subprocess.Popen(
                [*command, *deselect, *tests], cwd=ROOT, env=environment, stdin=subprocess.DEVNULL,
                stdout=file, stderr=subprocess.STDOUT, start_new_session=True,
            )  # fmt: skip
            try:
                status: int | None = process.wait(limit)
            except subprocess.TimeoutExpired:
                status = None
            finally:
                mutate.kill_session(process.pid)
                process.wait()
        seconds = os.times().elapsed - times.elapsed
        if status is None:
            return "did not end", None, seconds
        if status in (0, 5):
            return "passed", None, seconds
        text = log.read_text(encoding="utf-8", errors="replace")
        return "killed", failed_test(text), seconds


def site_packages(python: Path) -> Path:
    ask = [python, "-c", "import sysconfig; print(sysconfig.get_paths()['purelib'])"]
    return Path(subprocess.run(ask, check=True, capture_output=True, text=True).stdout.strip())


# --- Runs. ---


def forget_changed_functions() -> None:
    """Remove the outcomes of functions that changed since."""
    if not RESULTS.exists():
        return
    rows = mutate.current_rows(RESULTS)
    RESULTS.write_text("".join(map(mutate.as_line, rows)), encoding="utf-8")


def run_mutants(
    mutants: list[Mutant], again: bool, jobs: int, tests: Sequence[str] = ()
) -> dict[str, str]:
    """Return outcomes by key. Known outcomes are kept; `again` retries unexplained survivors.

    `tests` replace the tests of the map, for known survivors only: mutants without an outcome need
    all tests.
    """
    WORK.mkdir(parents=True, exist_ok=True)
    before = mutate.known(mutants, RESULTS)
    forget_changed_functions()
    explained = mutate.explained(EXPLAINED)
    outcomes = {
        key: how
        for key, how in before.items()
        if not again or key in explained or not how.startswith("alive")
    }
    todo = [mutant for mutant in mutants if mutant.key not in outcomes]
    if tests:
        todo = [mutant for mutant in todo if mutant.key in before]
    if todo:
        reach, idle = Reach(tests), SimpleQueue[Workshop]()
        for number in range(min(jobs, len(todo))):
            workshop = Workshop(number, BUDGET_AGAIN if again else BUDGET)
            workshop.prepare()
            idle.put(workshop)
        done = itertools.count(1)

        def judge(mutant: Mutant) -> None:
            workshop = idle.get()
            try:
                outcomes[mutant.key] = workshop.judge(mutant, reach)
            finally:
                idle.put(workshop)
            mutate.keep(mutant, outcomes[mutant.key], RESULTS)
            print(f"{next(done)}/{len(todo)} {outcomes[mutant.key]} <- {mutant.key}", flush=True)

        with ThreadPoolExecutor(jobs) as pool:
            list(pool.map(judge, todo))
    return {mutant.key: outcomes[mutant.key] for mutant in mutants if mutant.key in outcomes}


ABOUT = (
    "Mutants of the extension and the Python package, each with one small fault, and the number "
    "found by the Python tests that reach the line. By `./dev mutate --bindings --sample N "
    "--record`."
)


def main() -> int:
    parser = mutate.parser_of("./dev mutate --bindings", __doc__, FEW_SEED)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="mutants at a time")
    parser.add_argument(
        "--tests", nargs="+", metavar="TEST", default=[], help="with --alive: run only these tests"
    )
    parser.add_argument("--map", action="store_true", help=f"write {TESTS_OF.name} and stop")
    options = parser.parse_args()
    if options.tests and not options.alive:
        parser.error("--tests needs --alive: only known survivors may run a part of the tests")
    if options.map:
        write_test_map(Reach())
        return 0
    every = mutate.all_mutants(sources())
    mutants = [m for m in every if m.file in options.files] if options.files else every
    if options.sample or not options.files:
        mutants = mutate.drawn(mutants, options.sample or FEW, options.seed)
    outcomes = run_mutants(mutants, options.alive, options.jobs, options.tests)
    plain = {key: how.partition(":")[0] if "alive" in how else how for key, how in outcomes.items()}
    verdict = Verdict(plain, mutate.explained(EXPLAINED), LEAST)
    found = list(verdict.faults())
    print(*found, sep="\n")
    if options.sample and verdict.percent >= LEAST:  # a goal for the whole sample
        found = []  # survivors are listed for the next test
    counted = verdict.count("killed") + verdict.count("did not end") + len(verdict.alive)
    same, broken = verdict.count("same"), verdict.count("not compiled")
    print(f"{verdict.percent:.1f} % of {counted} mutants killed, {len(every)} mutants in all")
    print(f"not counted: {same} with the same machine code, {broken} not compiled")
    if options.record and not found:
        mutate.record(
            "mutation-bindings", "Mutation of the bindings", ABOUT, verdict, len(every),
            options.seed,
        )  # fmt: skip
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
