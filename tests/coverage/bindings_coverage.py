"""Measure the branch coverage of the bindings by the Python tests: `./dev coverage bindings`.

    ./dev coverage bindings            run the Python tests, print coverage by file
    ./dev coverage bindings FILE ...   run only the named test files
    ./dev coverage bindings --again    print the figures of the last run
    ./dev coverage bindings --record   run the Python tests and write the figures of the docs

gcov measures the extension (bindings/src) in a separate build. coverage.py measures the package
(bindings/memrt, bindings/pytest_memrt), child processes included. Both are installed into virtual
environments below build/bindings-coverage. All other packages come from .venv. For tests/clients
and tests/numba, the packages of `./dev suites clients` or `./dev suites numba` come first.
A test file that fails under coverage.py runs again without it, for the counters of the extension.
A branch that tests cannot take carries a reason beside the code: `GCOV_EXCL_BR_LINE: reason` in C,
`# pragma: no cover - reason` in Python. gcovr and coverage.py skip such lines.
Lines that are one reference macro of CPython (CPYTHON_MACRO) count no branches: gcov sees the tests
for NULL and for the result of a visit inside the macro, which are CPython's code.

Each test file runs in a separate pytest process. The results therefore name the test files that
reach a line of C, and the tests that reach a line of Python. `./dev mutate --bindings` uses both
maps.

No library maps lines of C to tests: gcovr and coverage.py only measure.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "suites"))
import environment

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "numba" / "upstream"))
import rows as numba_rows

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent
WORK = ROOT / "build" / "bindings-coverage"
PYTHON = WORK / "venv" / "bin" / "python"
CLIENTS = WORK / "clients-venv" / "bin" / "python"
NUMBA = WORK / "numba-venv" / "bin" / "python"
CMAKE = WORK / "cmake"
COUNTERS = WORK / "gcov"
DATA = WORK / "data"
LOGS = WORK / "log"
SETTINGS = HERE / "bindings.coveragerc"
RESULTS = WORK / "results.json"
TESTS = ("tests/python", "tests/cuda", "tests/docs", "tests/failures", "tests/report")
CLIENT_TESTS, NUMBA_TESTS = "tests/clients", "tests/numba"
FAILURES = "tests/failures/meet.py --quick --faults="  # memory errors, by their source
FAULTS = ("memrt", "heap", "mmap", "thread", *(f"python --part={k}/4" for k in (1, 2, 3, 4)))
LIMIT = 1200  # seconds for one test file
FAILURES_LIMIT = 3600  # seconds for the failure points of one source
GOAL = 95.0
SHOWN = 40  # lines of one file in the report
CPYTHON_MACRO = r"\s*Py_(?:CLEAR|VISIT|XDECREF|XINCREF|SETREF|XSETREF)\([^;]*\);\s*$"
EXCLUDED_C = re.compile(r"GCOV_EXCL_(?:BR_)?(?:LINE|START)(?P<reason>[^*\n]*)")
EXCLUDED_PYTHON = re.compile(r"#\s*pragma: no (?:cover|branch)(?P<reason>[^\n]*)")


# --- Building. ---


def run(*command: object, **options: Any) -> None:
    texts = [str(each) for each in command]
    done = subprocess.run(texts, cwd=ROOT, capture_output=True, text=True, **options)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(texts)} failed:\n{done.stdout}{done.stderr}")


def site_packages(python: Path) -> Path:
    ask = [python, "-c", "import sysconfig; print(sysconfig.get_paths()['purelib'])"]
    return Path(subprocess.run(ask, check=True, capture_output=True, text=True).stdout.strip())


def make_environment(python: Path, others: Iterable[Path], wheel: Path) -> None:
    """Make a virtual environment with the measured wheel and the packages of others."""
    if not python.exists():
        run(sys.executable, "-m", "venv", "--without-pip", python.parents[1])
    lines = [f"sys.path.append({str(each)!r})" for each in (*map(site_packages, others), HERE)]
    text = f"import sys; {'; '.join(lines)}\nimport bindings_start\n"
    (site_packages(python) / "memrt-coverage.pth").write_text(text)
    (python.parent / "pytest").write_text(
        f"#!{python}\nimport sys\nfrom pytest import console_main\n\nsys.exit(console_main())\n"
    )
    (python.parent / "pytest").chmod(0o755)
    install = ("install", "--force-reinstall", "--no-deps", "--quiet")
    run(sys.executable, "-m", "pip", "--python", python, *install, wheel)


def prepare() -> None:
    """Build the wheel with counters and install it into the virtual environments."""
    WORK.mkdir(parents=True, exist_ok=True)
    run(
        *(sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation"),
        *("--wheel-dir", WORK / "wheel", "--config-settings", f"build-dir={CMAKE}"),
        *("--config-settings", "cmake.define.MEMRT_COVERAGE_EXTENSION=ON", "."),
        env={**os.environ, "CMAKE_GENERATOR": "Ninja"},
    )
    wheels = sorted((WORK / "wheel").glob("memrt-*.whl"), key=lambda path: path.stat().st_mtime)
    own = Path(sys.executable)
    make_environment(PYTHON, [own], wheels[-1])
    make_environment(CLIENTS, [environment.clients(), own], wheels[-1])
    make_environment(NUMBA, [numba_environment(), own], wheels[-1])


def numba_environment() -> Path:
    """Return the Python of the environment of `./dev suites numba`."""
    wheel = environment.newest(ROOT / "build" / "wheel")
    requirements = numba_rows.rows()[-1].requirements()
    return environment.ensure(ROOT / "build" / "numba-venv", sys.executable, requirements, wheel)


# --- Running. ---


def test_files(named: Sequence[str]) -> list[str]:
    """Return the test files, new and slow files first."""
    if named:
        return [str(Path(name)) for name in named]
    tops = (*TESTS, CLIENT_TESTS, NUMBA_TESTS)
    found = [path for top in tops for path in (ROOT / top).rglob("test_*.py")]
    seconds = json.loads(RESULTS.read_text())["seconds"] if RESULTS.exists() else {}
    names = [str(path.relative_to(ROOT)) for path in found]
    names += [FAILURES + fault for fault in FAULTS]
    return sorted(names, key=lambda name: (-seconds.get(name, LIMIT), name))


def python_of(test: str) -> Path:
    """Return the Python of the environment that a test file needs."""
    others = {CLIENT_TESTS: CLIENTS, NUMBA_TESTS: NUMBA}
    return next((python for top, python in others.items() if test.startswith(top)), PYTHON)


def stem_of(test: str) -> str:
    return re.sub(r"\.py\b", "", test).replace("/", ".").replace(" --", ".").replace("=", ".")


@dataclass(frozen=True)
class Run:
    """Status and duration of one test file."""

    test: str
    status: int
    seconds: float


def failing(variables: dict[str, str]) -> dict[str, str]:
    """Return the environment of meet.py. coverage.py stays off: Python has no memory there."""
    sys.path.insert(0, str(ROOT / "tests" / "failures"))
    import refusal

    refusal.build(WORK / "failures")
    added = refusal.environment(WORK / "failures")
    return {**added, **variables, **{name: added[name] for name in ("PYTHONPATH", "LD_PRELOAD")}}


def run_tests(test: str) -> Run:
    """Run one test file under both tools."""
    shutil.rmtree(COUNTERS / stem_of(test), ignore_errors=True)
    for data in DATA.glob(f".coverage.{stem_of(test)}.*"):
        data.unlink()
    done = run_once(test)
    if done.status != 0 and not test.startswith(FAILURES):
        again = run_once(test, with_package=False)
        done = Run(test, again.status, done.seconds + again.seconds)
    return done


def run_once(test: str, with_package: bool = True) -> Run:
    """Run one test file under gcov, and with `with_package` under coverage.py."""
    log = LOGS / f"{stem_of(test)}{'' if with_package else '.again'}.log"
    python = python_of(test)
    variables = {
        **os.environ,
        "PATH": f"{python.parent}{os.pathsep}{os.environ['PATH']}",
        "GCOV_PREFIX": str(COUNTERS / stem_of(test)),
        "GCOV_ERROR_FILE": "/dev/null",
        "COVERAGE_PROCESS_START": str(SETTINGS),
        "BINDINGS_COVERAGE_DATA": str(DATA / f".coverage.{stem_of(test)}"),
        "BINDINGS_COVERAGE_TEST": test,
    }
    options = ("-q", "-p", "bindings_contexts", "-p", "no:cacheprovider")
    command = [python, "-m", "pytest", *options, test]
    limit = LIMIT
    if test.startswith(FAILURES):
        command, variables = [python, *test.split()], failing(variables)
        limit, with_package = FAILURES_LIMIT, False
    if not with_package:
        variables["COVERAGE_PROCESS_START"] = ""
    begin = time.monotonic()
    with log.open("w") as file:
        try:
            status = subprocess.run(
                command, cwd=ROOT, env=variables, stdin=subprocess.DEVNULL,
                stdout=file, stderr=subprocess.STDOUT, timeout=limit, check=False,
            ).returncode  # fmt: skip
        except subprocess.TimeoutExpired:
            status = -1
    return Run(test, status, time.monotonic() - begin)


def run_all(tests: Sequence[str], jobs: int) -> list[Run]:
    for folder in (COUNTERS, DATA, LOGS):
        folder.mkdir(parents=True, exist_ok=True)
    done = []
    with ThreadPoolExecutor(jobs) as pool:
        for number, each in enumerate(pool.map(run_tests, tests), 1):
            how = {0: "passed", -1: "exceeded its time limit"}.get(each.status, "FAILED")
            print(f"{number}/{len(tests)} {each.test}: {how}, {each.seconds:.0f} s", flush=True)
            done.append(each)
    return done


# --- Results. ---


def gcovr(*arguments: object) -> None:
    ignored = [
        f"--gcov-ignore-parse-errors={kind}.warn" for kind in ("negative_hits", "suspicious_hits")
    ]
    run(sys.executable, "-m", "gcovr", "--root", ROOT, "-j", os.cpu_count(), *ignored, *arguments)


def tracefile(test: str) -> Path:
    return COUNTERS / f"{stem_of(test)}.json"


def collect_c(test: str) -> None:
    """Turn the counters that one test file left into a tracefile of gcovr."""
    counters = COUNTERS / stem_of(test)
    if not counters.exists():
        return
    for notes in CMAKE.rglob("_memrt.dir/**/*.gcno"):
        copy = counters / notes.relative_to("/")
        if copy.with_suffix(".gcda").exists():
            shutil.copyfile(notes, copy)
    gcovr("--filter", "bindings/src/", "--exclude-unreachable-branches", "--exclude-throw-branches",
          "--exclude-branches-by-pattern", CPYTHON_MACRO,
          "--json", tracefile(test), counters)  # fmt: skip


def c_lines(test: str) -> dict[str, list[int]]:
    """The lines of C that a test file reaches."""
    report = json.loads(tracefile(test).read_text(encoding="utf-8"))
    return {
        file["file"]: [line["line_number"] for line in file["lines"] if line["count"] > 0]
        for file in report["files"]
    }


@dataclass(frozen=True)
class Figures:
    """Branches of one file, and the lines with branches that no test takes."""

    file: str
    branches: int
    taken: int
    missing: list[int]

    @property
    def percent(self) -> float:
        return 100 * self.taken / self.branches if self.branches else 100.0


def c_figures(tests: Iterable[str]) -> list[Figures]:
    """Return the sums over all test files."""
    whole = WORK / "extension.json"
    files = [tracefile(test) for test in tests if tracefile(test).exists()]
    gcovr(*(part for file in files for part in ("--add-tracefile", file)), "--json", whole)
    found = []
    for file in json.loads(whole.read_text(encoding="utf-8"))["files"]:
        ways = [
            (line["line_number"], b["count"])
            for line in file["lines"]
            for b in line["branches"]
            if not b.get("gcovr/excluded")  # gcovr keeps excluded branches in its JSON
        ]
        missing = sorted({line for line, count in ways if count == 0})
        taken = sum(count > 0 for _, count in ways)
        found.append(Figures(file["file"], len(ways), taken, missing))
    return found


def python_data() -> Path:
    """Combine the data files of all processes; file names are those of the installed files."""
    whole = WORK / "package.coverage"
    whole.unlink(missing_ok=True)
    parts = sorted(DATA.glob(".coverage.*"))
    command = ("-m", "coverage", "combine", "--keep", "--quiet", f"--rcfile={SETTINGS}")
    variables = {**os.environ, "BINDINGS_COVERAGE_DATA": str(whole), "BINDINGS_COVERAGE_TEST": ""}
    run(PYTHON, *command, *parts, env=variables)
    return whole


def python_figures(data: Path) -> list[Figures]:
    report = WORK / "package.json"
    variables = {**os.environ, "BINDINGS_COVERAGE_DATA": str(data), "BINDINGS_COVERAGE_TEST": ""}
    run(PYTHON, "-m", "coverage", "json", f"--rcfile={SETTINGS}", "-o", report, env=variables)
    return merge_environments(json.loads(report.read_text(encoding="utf-8"))["files"])


def merge_environments(files: dict[str, Any]) -> list[Figures]:
    """Return the figures of each source, which both virtual environments have installed."""
    known: dict[str, set[Any]] = {}
    taken: dict[str, set[Any]] = {}
    for installed, file in files.items():
        name = name_in_tree(installed)
        done = {*file["executed_lines"], *map(tuple, file["executed_branches"])}
        missing = {*file["missing_lines"], *map(tuple, file["missing_branches"])}
        known.setdefault(name, set()).update(done, missing)
        taken.setdefault(name, set()).update(done)
    return [
        Figures(name, len(ways), len(taken[name]), missing_lines(ways - taken[name]))
        for name, ways in known.items()
    ]


def missing_lines(missing: Iterable[Any]) -> list[int]:
    """Return the lines of missing lines and of missing branches, which are pairs of lines."""
    return sorted({abs(way[0] if isinstance(way, tuple) else way) for way in missing})


def name_in_tree(installed: str) -> str:
    """The source of an installed file."""
    return f"bindings/{installed.rpartition('/site-packages/')[2]}"


def total(figures: Iterable[Figures]) -> float:
    rows = list(figures)
    return 100 * sum(row.taken for row in rows) / max(1, sum(row.branches for row in rows))


def unreasoned(root: Path) -> Iterator[str]:
    """Exclusions without a reason beside the code."""
    for pattern, sources in (
        (EXCLUDED_C, (root / "bindings").rglob("*.[ch]")),
        (EXCLUDED_PYTHON, (root / "bindings").rglob("*.py")),
    ):
        for path in sorted(sources):
            for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
                match = pattern.search(line)
                if match is not None and len(match["reason"].strip(" :-")) < 8:
                    yield f"{path.relative_to(root)}:{number}: exclusion without a reason"


def show(title: str, figures: Sequence[Figures]) -> None:
    print(f"\n{title}: {total(figures):.1f} %")
    for row in sorted(figures, key=lambda row: row.taken - row.branches):
        if row.missing:
            missed = f"{row.branches - row.taken:4} of {row.branches:4} missed"
            lines = " ".join(map(str, row.missing[:SHOWN]))
            more = " ..." if len(row.missing) > SHOWN else ""
            print(f"  {row.percent:5.1f} %  {missed}  {row.file}: {lines}{more}")


def evaluate(runs: Sequence[Run], part: bool) -> None:
    """Write results.json: figures, durations and the lines of C by test file. With `part`, the
    results of other test files stay."""
    for each in runs:  # in sequence: gcov writes into the root of the tree
        collect_c(each.test)
    some = part and RESULTS.exists()
    old = json.loads(RESULTS.read_text(encoding="utf-8")) if some else {}
    kept = {name: old.get(name, {}) for name in ("seconds", "status", "c")}
    for each in runs:
        kept["seconds"][each.test] = round(each.seconds, 1)
        kept["status"][each.test] = each.status
        kept["c"][each.test] = c_lines(each.test) if tracefile(each.test).exists() else {}
    extension, package = c_figures(kept["seconds"]), python_figures(python_data())
    figures = {"extension": extension, "package": package}
    plain = {name: [vars(row) for row in rows] for name, rows in figures.items()}
    RESULTS.write_text(json.dumps({**kept, **plain}), encoding="utf-8")


def report() -> int:
    results = json.loads(RESULTS.read_text(encoding="utf-8"))
    rows = {name: [Figures(**row) for row in results[name]] for name in ("extension", "package")}
    show("branches of the extension", rows["extension"])
    show("lines and branches of the package", rows["package"])
    failed = [test for test, status in results["status"].items() if status != 0]
    faults = [*unreasoned(ROOT)]
    for name, figures in rows.items():
        if total(figures) < GOAL:
            faults.append(f"{name}: {total(figures):.1f} % is below {GOAL:.0f} %")
    print("", *(f"failed under measurement: {test} (log in {LOGS})" for test in failed), sep="\n")
    print(*faults, sep="\n")
    return 1 if faults else 0


def record() -> None:
    sys.path.insert(0, str(ROOT / "tests" / "reliability"))
    import page

    results = json.loads(RESULTS.read_text(encoding="utf-8"))
    rows = {name: [Figures(**row) for row in results[name]] for name in ("extension", "package")}
    about = (
        "Branches of the extension, counted by gcov, and lines and branches of the Python package, "
        "counted by coverage.py. The counts are of the Python tests, with child processes. By "
        "`./dev coverage bindings --record`."
    )
    facts = {f"{name}, taken": f"{total(figures):.1f} %" for name, figures in rows.items()}
    facts["test files that fail under measurement"] = sum(map(bool, results["status"].values()))
    table = [(row.file, row.branches, row.taken) for each in rows.values() for row in each]
    columns = ("file", "branches", "taken")
    page.record("coverage-bindings", "Coverage of the bindings", about, facts, columns, table)


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="./dev coverage bindings",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("tests", nargs="*", help="test files to run (default: all)")
    parser.add_argument("--again", action="store_true", help="print the last figures, run nothing")
    parser.add_argument("--record", action="store_true", help="write the figures of the docs")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="test files at a time")
    options = parser.parse_args()
    if not options.again and not options.tests:
        shutil.rmtree(DATA, ignore_errors=True)  # removes data of deleted tests
    if not options.again:
        prepare()
        evaluate(run_all(test_files(options.tests), options.jobs), bool(options.tests))
    status = report()
    if options.record:
        record()
    return status


if __name__ == "__main__":
    sys.exit(main())
