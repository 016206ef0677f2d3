"""Define the sanitizers and Valgrind as tools: their builds, seeded bugs and test suites.

No library defines the runs: CTest's memcheck step runs C tests under one tool, without seeded bugs
and Python tests.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import environment
from environment import ROOT, logged
from pieces import watched

HERE = Path(__file__).resolve().parent
WORK = ROOT / "build" / "sanitize"
LIMIT = 3600  # seconds for all Python tests
# LeakSanitizer could not stop a thread. The notice alone, without a leak, is no report.
NOTICES = re.compile(r"(==\d+==Running thread \d+ was not suspended\. [^\n]*\n)+")
COMPILERS = ("cc", "c++", "gcc", "g++")
TEST_LIMIT = 1800  # seconds for one Python test, which is slower under a sanitizer


@dataclass(frozen=True)
class Watched:
    """The result of a suite under a tool. `reports` has a text for each failed test."""

    tests: int
    reports: list[str]


class Tool(ABC):
    """A sanitizer or Valgrind, and a suite of tests under it."""

    name: str
    title: str
    planted: Mapping[str, str]  # names of seeded bugs, each with a part of the tool's report

    @abstractmethod
    def version(self) -> str:
        """Return the version of the tool as text."""

    @abstractmethod
    def build(self, whole: bool) -> None:
        """Build memrt and the tests for the tool, all or only the part for the gate."""

    @abstractmethod
    def report_of(self, fault: str) -> str:
        """Return the tool's report on the program with a seeded bug."""

    @abstractmethod
    def watch(self, whole: bool) -> Watched:
        """Run the whole suite, or only the part for the gate."""

    def overlooked(self) -> list[str]:
        """Return the seeded bugs that the tool misses. Any missed bug voids clean results."""
        return [fault for fault, says in self.planted.items() if says not in self.report_of(fault)]


@dataclass
class OfC(Tool):
    """A tool for the C tests, which ctest runs under it."""

    name: str
    title: str
    planted: Mapping[str, str]
    asked: tuple[str, ...]  # command that prints the version
    folder: Path
    options: tuple[str, ...]
    part: str = ""  # tests of the gate, as a regular expression for ctest

    def version(self) -> str:
        return subprocess.check_output(self.asked, text=True).splitlines()[0]

    def build(self, whole: bool) -> None:
        configure = ("cmake", "-S", ROOT, "-B", self.folder, "-G", "Ninja")
        options = ("-DMEMRT_TESTS=ON", "-DMEMRT_WERROR=ON", *self.options)
        logged(f"cmake-{self.folder.name}", *configure, *options)
        targets = () if whole or not self.part else ("--target", *self._targets_of_part())
        logged(f"ninja-{self.folder.name}", "cmake", "--build", self.folder, *targets)

    def _targets_of_part(self) -> list[str]:
        """Return the targets of the part for the gate and of the seeded bugs."""
        chosen = ("-R", f"{self.part}|^planted_")
        command = ("ctest", "--test-dir", self.folder, "--show-only", *chosen)
        found = re.findall(r"Test +#\d+: (\S+)", subprocess.check_output(command, text=True))
        if not found:
            raise environment.StepError(f"no C test matches {self.part}")
        return found

    def report_of(self, fault: str) -> str:
        return "".join(case.said for case in self._ctest("-R", f"^planted_{fault}$"))

    def watch(self, whole: bool) -> Watched:
        chosen = () if whole or not self.part else ("-R", self.part)
        cases = self._ctest("-LE", "planted", *chosen)
        counts = (int(n) for case in cases for n in re.findall(r"Checks: (\d+),", case.said) or [1])
        reports = [f"{case.name}:\n{case.said}" for case in cases if case.failed]
        return Watched(sum(counts), reports)

    def _ctest(self, *arguments: str) -> list[Case]:
        junit = self.folder / "junit.xml"
        junit.unlink(missing_ok=True)
        command = ("ctest", "--test-dir", self.folder, "-j", str(os.cpu_count()))
        keep = ("--output-junit", junit, "--test-output-size-passed", "100000")
        # The JUnit file has the output and the failures. The caller evaluates the failures.
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        subprocess.run([*command, *keep, *arguments], check=False, **quiet)
        return list(cases_in(junit))


@dataclass(frozen=True)
class Case:
    """A test of a JUnit file that was not skipped."""

    name: str
    failed: bool
    said: str


def cases_in(junit: Path) -> Iterable[Case]:
    ran = (c for c in ElementTree.parse(junit).iter("testcase") if c.find("skipped") is None)
    for case in ran:
        failed = any(case.find(word) is not None for word in ("failure", "error"))
        said = "".join(case.itertext())
        yield Case(f"{case.get('classname')}::{case.get('name')}", failed, said)


class OfPython(Tool):
    """AddressSanitizer and UndefinedBehaviorSanitizer for the Python tests.

    The interpreter is built without sanitizers, so the runtimes of both sanitizers are preloaded.
    Reports go into files, which survive when a test discards the output or the exit status of a
    process.
    """

    name = "python"
    title = (
        "AddressSanitizer, UndefinedBehaviorSanitizer, LeakSanitizer: Python tests that are not "
        "marked as slow"
    )
    planted = {"overrun": "heap-buffer-overflow", "leak": "detected memory leaks"}  # noqa: RUF012
    kinds = "address,undefined"
    part = (
        "arrays/test_array.py",
        "arrays/test_handler.py",
        "arrays/test_lookup.py",
        "meminfo/test_meminfo.py",
        "meminfo/test_owner.py",
        "policy/test_policy.py",
    )

    def __init__(self) -> None:
        self._reports, self._log = WORK / "reports", WORK / "python.log"

    def version(self) -> str:
        return subprocess.check_output(["gcc", "--version"], text=True).splitlines()[0]

    def build(self, whole: bool) -> None:
        wheels = WORK / "wheel"
        pip = (sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation")
        settings = (f"cmake.define.MEMRT_SANITIZE={self.kinds}", f"build-dir={WORK / 'build'}")
        options = [word for setting in settings for word in ("-C", setting)]
        logged("sanitize-wheel", *pip, *options, "--wheel-dir", wheels, ROOT)
        packages = ("numpy", *environment.TEST_PACKAGES)
        has = environment.versions(Path(sys.executable), packages)
        requirements = [f"{name}=={has[name]}" for name in packages]
        wheel = environment.newest(wheels)
        environment.ensure(WORK / "venv", sys.executable, requirements, wheel, "sanitize")

    def report_of(self, fault: str) -> str:
        self._run(str(HERE / "planted" / f"{fault}.py"))
        return "".join(self._found())

    def watch(self, whole: bool) -> Watched:
        junit = WORK / "junit.xml"
        junit.unlink(missing_ok=True)
        files = [f"tests/python/{name}" for name in self.part]
        processes = ("-n", str(os.cpu_count()), "--dist", "worksteal")
        chosen = (*processes, "-m", "not slow", "tests/python") if whole else files
        limit = f"timeout={TEST_LIMIT}"
        end = self._run("-m", "pytest", "-q", "-o", limit, f"--junit-xml={junit}", *chosen)
        cases = list(cases_in(junit)) if junit.exists() else []
        failed = [f"{case.name}:\n{case.said}" for case in cases if case.failed]
        ended = [] if end == "exit status 0" else [f"pytest: {end}, see {self._log}"]
        return Watched(len(cases), [*self._found(), *failed, *ended])

    def _run(self, *command: str) -> str:
        """Run Python, and return a description of its end."""
        shutil.rmtree(self._reports, ignore_errors=True)
        self._reports.mkdir(parents=True)
        python = WORK / "venv" / "bin" / "python"
        return watched([python, *command], self._log, LIMIT, ROOT, self._environment())

    def _found(self) -> list[str]:
        """Return the sanitizer reports of all processes of the last run."""
        texts = (file.read_text(errors="replace") for file in sorted(self._reports.iterdir()))
        return [text for text in texts if not NOTICES.fullmatch(text)]

    @cached_property
    def _preloaded(self) -> str:
        ask = ("gcc", "-print-file-name=libasan.so"), ("gcc", "-print-file-name=libubsan.so")
        return " ".join(subprocess.check_output(words, text=True).strip() for words in ask)

    def _environment(self) -> dict[str, str]:
        log = f"log_path={self._reports / 'report'}"
        # Tests write to guard pages, and expect the signal to end a process.
        signals = "handle_segv=0:handle_sigbus=0"
        return {
            **os.environ,
            "PATH": f"{self._clean_tools()}{os.pathsep}{os.environ['PATH']}",
            "LD_PRELOAD": self._preloaded,
            # The tests are about memrt's own allocators, which MEMRT_TOOLS would replace. Without
            # caches, small blocks are blocks of malloc.
            "MEMRT_TOOLS": "0",
            "MEMRT_CACHE": "0",
            "PYTHONMALLOC": "malloc",  # arenas of Python's allocator would hide leaks
            # Two frames per call stack: the caller of the allocator identifies the leaking library.
            "ASAN_OPTIONS": f"{log}:{signals}:allocator_may_return_null=1:malloc_context_size=2",
            "LSAN_OPTIONS": f"suppressions={HERE / 'leaks.supp'}:print_suppressions=0",
            "UBSAN_OPTIONS": f"{log}:{signals}:print_stacktrace=1:halt_on_error=1",
            "CC": f"gcc -fsanitize={self.kinds}",
            "CXX": f"g++ -fsanitize={self.kinds}",
        }

    def _clean_tools(self) -> Path:
        """Return a folder of compilers that run without the sanitizers: compilers leak."""
        folder = WORK / "tools"
        folder.mkdir(parents=True, exist_ok=True)
        for name in COMPILERS:
            script = folder / name
            real = shlex.quote(str(shutil.which(name)))
            script.write_text(f'#!/bin/sh\nunset LD_PRELOAD\nexec {real} "$@"\n')
            script.chmod(0o755)
        return folder


ADDRESS = OfC(
    name="address",
    title="AddressSanitizer, UndefinedBehaviorSanitizer, LeakSanitizer: C tests",
    planted={
        "overrun": "heap-buffer-overflow",
        "leak": "detected memory leaks",
        "undefined": "shift exponent",
    },
    asked=("gcc", "--version"),
    folder=ROOT / "build" / "address-undefined",
    options=("-DMEMRT_SANITIZE=address,undefined",),
)
THREAD = OfC(  # clang's runtime models atomics more precisely than gcc's
    name="thread",
    title="ThreadSanitizer: C tests",
    planted={"race": "data race"},
    asked=("clang", "--version"),
    folder=ROOT / "build" / "thread",
    options=(
        *("-DMEMRT_SANITIZE=thread", "-DCMAKE_C_COMPILER=clang"),
        "-DCMAKE_CXX_COMPILER=clang++",
    ),
    part="^(stress|test_(central_list|hooks|large_cache|lock|meminfo|memory_limit|pressure|purger|reclaim|stats|symbols|thread|thread_cache))$",
)
MEMCHECK = OfC(
    name="memcheck",
    title="Valgrind's memcheck: C tests",
    planted={
        "overrun": "Invalid write",
        "leak": "definitely lost",
        "uninitialised": "uninitialised value",
    },
    asked=("valgrind", "--version"),
    folder=ROOT / "build" / "memcheck",
    options=("-DMEMRT_MEMCHECK=ON",),
    part="^(abi_.*|test_(block|block_api|central_list|lookup|meminfo|resizable|thread_cache|tiny))$",
)
TOOLS: tuple[Tool, ...] = (ADDRESS, OfPython(), THREAD, MEMCHECK)
