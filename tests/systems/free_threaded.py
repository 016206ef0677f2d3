"""Run Python tests on a free-threaded CPython with the GIL off: `./dev variants free-threaded`.

    ./dev variants free-threaded [ARG ...]            run tests/python, or pytest with arguments
    ./dev variants free-threaded --python 3.14 ...    on CPython 3.14; default: 3.13
    ./dev variants free-threaded --parallel ...       each test on four threads at once, by
                                                      pytest-run-parallel; tests with the marker
                                                      thread_unsafe run on one thread
    ./dev variants free-threaded --races ...          CPython and memrt with ThreadSanitizer; the
                                                      default is tests/python/threads
    ./dev variants free-threaded --record             also write the result of the default tests
                                                      into docs/reliability.md

The interpreter is built once from Debian's copy of the source with --disable-gil. The interpreters,
environments and logs are stored below build/free-threaded.

With --races, NumPy and other packages have no ThreadSanitizer. CPython's own list of known reports
applies, and tests/systems/races.supp. The command fails if a report is left.

No library builds the interpreter: pyenv and uv download builds or sources of other sites.
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import debian_sources
import matrix
import system_rows

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.append(str(ROOT / "tests" / "suites"))
import steps  # noqa: E402  (a script has only its own folder in the search path)
from environment import TEST_PACKAGES  # noqa: E402
from steps import StepError  # noqa: E402

VERSIONS = ("3.13", "3.14")
TOOLS = (*TEST_PACKAGES, "pytest-run-parallel", "scikit-build-core>=0.10")
# Most tests of other folders count blocks, policies or frames of the whole process.
PARALLEL = ["tests/python/arrays", "tests/python/interop"]
KNOWN_RACES = "Tools/tsan/suppressions_free_threading.txt"  # in the source of CPython


@dataclass(frozen=True)
class Interpreter:
    """A build of CPython without the GIL, with its environment."""

    version: str
    races: bool

    @property
    def folder(self) -> Path:
        name = f"{self.version}-races" if self.races else self.version
        return ROOT / "build" / "free-threaded" / name

    @property
    def program(self) -> Path:
        return self.folder / "python" / "bin" / f"python{self.version}t"

    @property
    def inside(self) -> Path:
        """The Python of the environment."""
        return self.folder / "venv" / "bin" / "python"

    @property
    def known(self) -> Path:
        return self.folder / "known.supp"

    @property
    def report(self) -> Path:
        """The report of the last tests, in the format of JUnit."""
        return self.folder / "report.xml"

    def run(self, name: str, *command: str | Path, where: Path = ROOT) -> None:
        """Run a step with its log in the folder, as steps.run() does."""
        quiet = {"TSAN_OPTIONS": "report_bugs=0"} if self.races else {}
        steps.run(self.folder / f"{name}.log", *command, where=where, variables=quiet)

    def build(self) -> None:
        """Build and install CPython, unless a build with these settings is there."""
        settings = ["--disable-gil", f"--prefix={self.folder / 'python'}"]
        settings += ["--with-thread-sanitizer"] if self.races else []
        stamp, wanted = self.folder / "python.stamp", " ".join(settings)
        if self.program.exists() and stamp.exists() and stamp.read_text() == wanted:
            return
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        print(f"→ downloading the source of Python {self.version} from Debian", flush=True)
        try:
            source = debian_sources.unpack(f"python{self.version}", self.folder)
        except OSError as error:
            raise StepError(str(error)) from None
        print("→ building CPython without the GIL, which takes some minutes", flush=True)
        self.run("configure", source / "configure", *settings, where=source)
        self.run("make", "make", f"-j{os.cpu_count()}", where=source)
        # Under ThreadSanitizer, compiling all modules takes many minutes. With -l, only modules of
        # the top folder are compiled now, and the others at the first import.
        options = ["COMPILEALL_OPTS=-j0 -l"] if self.races else []
        self.run("install", "make", "altinstall", *options, where=source)
        shutil.copyfile(source / KNOWN_RACES, self.known)
        shutil.rmtree(source)
        stamp.write_text(wanted)

    def make_environment(self) -> None:
        """Make the environment with NumPy and the tools of the tests, unless it is there."""
        tools = [name for name in TOOLS if (self.version, name) != ("3.13", "cffi")]  # no wheel
        stamp, wanted = self.folder / "venv.stamp", " ".join(tools)
        if stamp.exists() and stamp.read_text() == wanted:
            return
        print("→ making the environment", flush=True)
        self.run("venv", self.program, "-m", "venv", "--clear", self.folder / "venv")
        pip = (self.inside, "-m", "pip", "install", "--no-compile", "--only-binary=:all:")
        self.run("tools", *pip, "numpy", *tools)
        stamp.write_text(wanted)

    def build_wheel(self) -> Path:
        """Build memrt for the interpreter, and return the wheel."""
        print("→ building memrt", flush=True)
        wheels = self.folder / "wheel"
        shutil.rmtree(wheels, ignore_errors=True)
        # Without isolation, because pip would build the newest NumPy where NumPy has no wheel.
        build = [self.inside, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation"]
        if self.races:
            build += ["-Ccmake.define.MEMRT_SANITIZE=thread", "-Cinstall.strip=false"]
        self.run("wheel", *build, "-w", wheels, ROOT)
        return next(wheels.glob("memrt-*.whl"))

    def install_memrt(self) -> None:
        wheel = self.build_wheel()
        install = ("install", "--force-reinstall", "--no-deps")
        self.run("memrt", self.inside, "-m", "pip", *install, wheel)

    def test(self, arguments: list[str], parallel: bool) -> int:
        """Run pytest with the GIL off, and return the exit status."""
        environment = os.environ | {"PYTHON_GIL": "0"}
        if not parallel:  # pytest.warns catches the warnings of all contexts
            environment["PYTHON_CONTEXT_AWARE_WARNINGS"] = "0"
        workers = ["-n", str(os.cpu_count()), "--dist", "worksteal"]
        if parallel:
            options = ["--parallel-threads=4", *(arguments or PARALLEL)]
        else:
            default = "tests/python/threads" if self.races else "tests/python"
            options = arguments or [*workers, default]
        self.report.unlink(missing_ok=True)
        command = [str(self.inside), "-m", "pytest", "-q", f"--junit-xml={self.report}", *options]
        if not self.races:
            return subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode
        reports = self.folder / "reports"
        shutil.rmtree(reports, ignore_errors=True)
        reports.mkdir()
        lists = self.folder / "all.supp"
        lists.write_text(self.known.read_text() + (HERE / "races.supp").read_text())
        environment["TSAN_OPTIONS"] = (
            f"suppressions={lists} log_path={reports / 'report'} exitcode=0 die_after_fork=0 "
            "ignore_noninstrumented_modules=1"
        )
        status = subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode
        return show_reports(reports) or status


def record(interpreter: Interpreter, tests: str, status: int) -> None:
    """Write the result of the last tests into the table of tested systems."""
    row = system_rows.System(
        f"{platform.freedesktop_os_release()['PRETTY_NAME']}, Python built from Debian's source",
        platform.machine(),
        interpreter.version,
        matrix.numpy_version(interpreter.inside),
        "off",
        tests,
        system_rows.outcome(status == 0, matrix.count(interpreter.report)),
    )
    system_rows.record([row])


def show_reports(folder: Path) -> int:
    """Print the summary line of each report of ThreadSanitizer, and return 1 if there is one."""
    lines = [
        line
        for file in sorted(folder.iterdir())
        for line in file.read_text(errors="replace").splitlines()
        if line.startswith("SUMMARY: ThreadSanitizer")
    ]
    for line in sorted(set(lines)):
        print(f"{lines.count(line):5} times: {line}")
    print(f"{len(lines)} reports of ThreadSanitizer in {folder}")
    return 1 if lines else 0


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="./dev variants free-threaded",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--python", choices=VERSIONS, default="3.13")
    parser.add_argument("--parallel", action="store_true")
    parser.add_argument("--races", action="store_true")
    parser.add_argument("--record", action="store_true")
    options, arguments = parser.parse_known_args()
    if options.record and arguments:
        parser.error(f"--record needs the default tests, got {' '.join(arguments)}")
    interpreter = Interpreter(options.python, options.races)
    try:
        interpreter.build()
        interpreter.make_environment()
        interpreter.install_memrt()
    except StepError as error:
        print(f"free-threaded: {error}", file=sys.stderr)
        return 1
    status = interpreter.test(arguments, options.parallel)
    if options.record:
        tests = "Python, four threads at once" if options.parallel else "Python"
        record(interpreter, "Python, ThreadSanitizer" if options.races else tests, status)
    return status


if __name__ == "__main__":
    sys.exit(main())
