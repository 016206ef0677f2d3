"""Run the fuzzers of tests/fuzz with libFuzzer, and two Python tests with Hypothesis.

Each C fuzzer must first find a seeded bug: the fuzzer is linked with a faulty copy of one source
file. Then all fuzzers run, two at a time, each under its settings. The fuzzers start from the
committed inputs and the kept inputs of earlier runs in build/fuzz. A failing input is
printed with the command to repeat the failure. A run of all targets for five minutes or more
without a find writes figures to docs/reliability.md.

No library replaces the tool: ClusterFuzzLite runs in containers of a CI only, and seeds no bugs.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

import page
from rich.console import Console
from rich.progress import Progress

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build" / "fuzz"
CORPUS = ROOT / "tests" / "fuzz" / "corpus"
HYPOTHESIS = {  # targets that are Python tests, run by Hypothesis
    "stateful": "tests/python/meminfo/test_stateful.py",
    "foreign": "tests/python/interop/test_foreign.py",
}
AT_ONCE = 2
GRACE = 120  # seconds beyond the time of a job until the fuzzer counts as hung
RECORDED = 300  # minimum seconds of fuzzing for recorded figures
FAULT_SECONDS = 60  # limit for finding a seeded bug; most are found at once

# Environment settings of each target, besides MEMRT_TOOLS=0: in builds with AddressSanitizer, memrt
# uses its own allocators only if the option is off.
SETTINGS = {
    "table": ["MEMRT_CACHE=1", "MEMRT_CACHE=0", "MEMRT_CHECK=1"],
    "sizes": ["MEMRT_CACHE=1", "MEMRT_CACHE=0"],
    "structs": ["MEMRT_CACHE=1"],
    "options": ["MEMRT_CACHE=1"],
    "tensors": ["MEMRT_CACHE=1"],
    "columns": ["MEMRT_CACHE=1"],
    "stateful": ["MEMRT_CACHE=1", "MEMRT_CHECK=1"],
    "foreign": ["MEMRT_CACHE=1"],
}


@dataclass(frozen=True)
class Fault:
    """A seeded bug: a piece of a source file, and its replacement in the faulty copy."""

    path: str
    right: str
    wrong: str


FAULTS = {
    "table": Fault(
        "runtime/meminfo/block_api.c",
        "->data, mi->data, memrt__size_min(mi->size, size));",
        "->data, mi->data, memrt__size_min(mi->size, size) / 2);",
    ),
    "sizes": Fault(
        "runtime/meminfo/block_layout.c",
        "return memrt__size_add(out->lead, memrt__size_max(size, 1), &out->bytes) &&",
        "return (out->bytes = out->lead + memrt__size_max(size, 1)) != 0 &&",
    ),
    "structs": Fault(
        "runtime/meminfo/meminfo.c",
        "memrt__size_min(options->struct_size, sizeof(*out))",
        "sizeof(*out)",
    ),
    "options": Fault("runtime/config/option_types.c", "&& *value <= most;", ";"),
    "tensors": Fault(
        "runtime/interop/dlpack_view.c",
        "size_t *end = stride < 0 ? &reach->before : &reach->after;",
        "size_t *end = &reach->after;",
    ),
    "columns": Fault("runtime/interop/arrow_adopt.c", "out->first_bit = array->offset % 8;", ""),
}


@dataclass(frozen=True)
class Job:
    """One target, run under one setting for some seconds."""

    target: str
    setting: str
    seconds: int

    @property
    def name(self) -> str:
        return f"{self.target} {self.setting}"


@dataclass(frozen=True)
class Result:
    """Figures of a job: executed inputs (or examples), and reached places in the code of memrt.

    `reached` is 0 if unknown.
    """

    job: Job
    executed: int
    reached: int


class FindError(Exception):
    """A fuzzer failed, hung or ran nothing. The message has the output."""


def environment(setting: str) -> dict[str, str]:
    variables = {
        "ASAN_OPTIONS": "allocator_may_return_null=1:quarantine_size_mb=16",
        "UBSAN_OPTIONS": "print_stacktrace=1",
        "MEMRT_TOOLS": "0",
    }
    name, _, value = setting.partition("=")
    return {**os.environ, **variables, name: value}


def tail(text: str, lines: int = 60) -> str:
    return "\n".join(text.rstrip().splitlines()[-lines:])


def run(command: list[object], setting: str, seconds: float) -> subprocess.CompletedProcess[str]:
    """Run a command under a setting. Raises FindError if the command hangs."""
    words = [str(word) for word in command]
    try:
        return subprocess.run(
            words,
            env=environment(setting),
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=seconds + GRACE,
        )
    except subprocess.TimeoutExpired as hung:
        output = tail((hung.stdout or b"").decode(errors="replace"))
        raise FindError(f"{output}\nhangs: {setting} {shlex.join(words)}") from hung


def unpack(target: str, folder: Path) -> None:
    """Write each committed input, a line of hexadecimal digits, as a file for the fuzzer."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = (CORPUS / f"{target}.txt").read_text(encoding="ascii").split()
    for number, line in enumerate(lines):
        (folder / f"committed-{number}").write_bytes(bytes.fromhex(line))


def renew(target: str) -> None:
    """Replace the committed inputs by a small set with the same coverage as the kept inputs."""
    kept, few = BUILD / "kept" / target, BUILD / "few" / target
    shutil.rmtree(few, ignore_errors=True)
    few.mkdir(parents=True)
    options = ["-set_cover_merge=1", "-use_counters=0", "-max_len=100", "-detect_leaks=0"]
    result = run([BUILD / f"fuzz_{target}", *options, few, kept], SETTINGS[target][0], 600)
    if result.returncode != 0:
        raise FindError(tail(result.stdout))
    lines = sorted((path.read_bytes().hex() for path in few.iterdir()), key=lambda x: (len(x), x))
    text = "\n".join(filter(None, lines)) + "\n"
    (CORPUS / f"{target}.txt").write_text(text, encoding="ascii")


def fuzzer_command(program: Path, target: str, seconds: int, kept: Path) -> list[object]:
    """Return the command of a fuzzer, which starts from the inputs in `kept`.

    The committed inputs are copied into `kept`, and libFuzzer adds new inputs there.
    """
    unpack(target, kept)
    finds = BUILD / "finds"
    finds.mkdir(exist_ok=True)
    options: dict[str, object] = {
        "max_total_time": seconds,
        "max_len": 600,
        "len_control": 20,
        "detect_leaks": 0,  # not after each input; leaks are detected at process exit
        "timeout": 20,
        "print_final_stats": 1,
        "artifact_prefix": f"{finds}/{target}-",
    }
    words = CORPUS.parent / f"{target}.dict"
    if words.exists():
        options["dict"] = words
    return [program, *(f"-{k}={v}" for k, v in options.items()), kept]


def input_of(output: str) -> str | None:
    """Return the file of the failing input, or None if the output names no file."""
    found = re.search(r"Test unit written to (\S+)", output)
    return found[1] if found else None


def figure(pattern: str, output: str) -> int:
    found = re.findall(pattern, output)
    return int(found[-1]) if found else 0


def fuzz(job: Job) -> Result:
    """Run a C fuzzer until its time is over. Raises FindError for any other end."""
    program = BUILD / f"fuzz_{job.target}"
    kept = BUILD / "kept" / job.target
    result = run(fuzzer_command(program, job.target, job.seconds, kept), job.setting, job.seconds)
    if result.returncode != 0:
        again = f"{job.setting} {program} {input_of(result.stdout) or kept}"
        raise FindError(f"{tail(result.stdout)}\n\n{job.name} fails; to repeat:\n{again}")
    executed = figure(r"stat::number_of_executed_units: (\d+)", result.stdout)
    if executed == 0:
        raise FindError(f"{tail(result.stdout)}\n\n{job.name} ran nothing")
    return Result(job, executed, figure(r"cov: (\d+)", result.stdout))


def play(job: Job) -> Result:
    """Run Hypothesis with consecutive seeds until the time of the job is over, at least once."""
    end, executed, seed = time.monotonic() + job.seconds, 0, time.time_ns() % 10**6
    while executed == 0 or time.monotonic() < end:
        test = [HYPOTHESIS[job.target], "-p", "no:cacheprovider", "-q"]
        options = ["--hypothesis-profile=long", f"--hypothesis-seed={seed}"]
        statistics = ["--hypothesis-show-statistics"]
        command = [sys.executable, "-m", "pytest", *test, *options, *statistics]
        result = run(command, job.setting, 600)
        if result.returncode != 0:
            again = f"{job.setting} {shlex.join(command)}"
            raise FindError(f"{tail(result.stdout, 200)}\n\n{job.name} fails; to repeat:\n{again}")
        passing = re.findall(r"(\d+) passing, \d+ failing", result.stdout)
        if not passing:
            raise FindError(f"{tail(result.stdout)}\n\n{job.name} ran nothing")
        executed += sum(map(int, passing))
        seed += 1
    return Result(job, executed, 0)


def perform(job: Job) -> Result:
    return play(job) if job.target in HYPOTHESIS else fuzz(job)


def compile_commands() -> list[dict[str, str]]:
    """Return the compilation database of the build."""
    return json.loads((BUILD / "compile_commands.json").read_text(encoding="utf-8"))


def compile_command(path: str) -> list[str]:
    """Return the command that compiled a source file in the build."""
    [entry] = [each for each in compile_commands() if each["file"] == str(ROOT / path)]
    return shlex.split(entry["command"])


def objects_of(target: str) -> list[str]:
    """Return the object files of a target, without the objects of the library."""
    folder = f"CMakeFiles/fuzz_{target}.dir/"
    commands = [shlex.split(each["command"]) for each in compile_commands()]
    outputs = [command[command.index("-o") + 1] for command in commands]
    return [output for output in outputs if output.startswith(folder)]


def with_fault(target: str, fault: Fault) -> Path:
    """Link the target with a faulty copy of one source file, and return the program.

    The linker uses the faulty object in place of the archive member with the same symbols.
    """
    text = (ROOT / fault.path).read_text(encoding="utf-8")
    if text.count(fault.right) != 1:
        raise FindError(
            f"{fault.path} must contain '{fault.right}' once, got {text.count(fault.right)} times"
        )
    folder = BUILD / "faulty"
    folder.mkdir(exist_ok=True)
    copy, compiled = folder / f"{target}.c", folder / f"{target}.o"
    copy.write_text(text.replace(fault.right, fault.wrong), encoding="utf-8")
    command = [*compile_command(fault.path), "-w"]
    command[command.index("-c") + 1] = str(copy)
    command[command.index("-o") + 1] = str(compiled)
    subprocess.run(command, check=True, cwd=BUILD)
    program = folder / f"fuzz_{target}"
    sanitizers = "-fsanitize=fuzzer,address,undefined"
    libraries = [BUILD / "libmemrt_static.a", "-lpthread"]
    link = [command[0], sanitizers, *objects_of(target), compiled, *libraries]
    subprocess.run([*link, "-o", program], check=True, cwd=BUILD)
    return program


def find_fault(target: str) -> None:
    """Run the target on its seeded bug. Raises FindError unless the target finds the bug."""
    program = with_fault(target, FAULTS[target])
    command = fuzzer_command(program, target, FAULT_SECONDS, BUILD / "faulty" / target)
    result = run(command, SETTINGS[target][0], FAULT_SECONDS)
    found = input_of(result.stdout)
    if result.returncode == 0 or found is None:
        raise FindError(f"{tail(result.stdout)}\n\n{target} missed the seeded bug {FAULTS[target]}")
    Path(found).unlink()


def jobs(minutes: float, targets: Iterable[str]) -> list[Job]:
    """Return one job for each setting of each target.

    All jobs get the same time. Run AT_ONCE at a time, the jobs together take `minutes`.
    """
    pairs = [(target, setting) for target in targets for setting in SETTINGS[target]]
    seconds = max(1, round(minutes * 60 * AT_ONCE / len(pairs)))
    return [Job(target, setting, seconds) for target, setting in pairs]


def results(planned: list[Job], progress: Progress) -> Iterator[Result]:
    """Run all jobs and yield the results in order of completion.

    A find raises FindError, after all other jobs have ended.
    """
    task = progress.add_task("fuzzing", total=len(planned))
    with ThreadPoolExecutor(AT_ONCE) as pool:
        running = [pool.submit(perform, job) for job in planned]
        for future in as_completed(running):
            result = future.result()
            progress.console.print(f"{result.job.name}: {result.executed:,}")
            progress.advance(task)
            yield result


def record(found: list[Result], minutes: float) -> None:
    targets = list(dict.fromkeys(result.job.target for result in found))
    rows = []
    for target in targets:
        mine = [result for result in found if result.job.target == target]
        reached = max(result.reached for result in mine)
        under = ", ".join(f"`{result.job.setting}`" for result in mine)
        rows.append([target, under, sum(r.executed for r in mine), reached or "not measured"])
    page.record(
        "fuzzing",
        "Fuzzing",
        "The fuzzers of `tests/fuzz` with libFuzzer, AddressSanitizer and "
        "UndefinedBehaviorSanitizer, and two Python tests with Hypothesis: `./dev verify fuzz`. "
        "Every C fuzzer found its seeded bug. No fuzzer found a bug in memrt.",
        {"minutes": round(minutes), "inputs": sum(result.executed for result in found)},
        ["target", "under", "inputs", "code edges covered"],
        rows,
    )


def arguments() -> argparse.Namespace:
    summary, about = __doc__.split("\n\n", 1)
    parser = argparse.ArgumentParser(prog="./dev verify fuzz", description=summary, epilog=about)
    parser.add_argument(
        "minutes", nargs="?", type=float, default=10, help="minutes in all, default 10"
    )
    parser.add_argument(
        "targets",
        nargs="*",
        metavar="TARGET",
        help=f"target to fuzz: {', '.join(SETTINGS)}; default: all",
    )
    parser.add_argument("--renew", action="store_true",
                        help="replace the committed inputs by a few kept inputs")  # fmt: skip
    parsed = parser.parse_args()
    unknown = set(parsed.targets) - set(SETTINGS)
    if unknown or not parsed.minutes > 0:
        parser.error(
            f"TARGET must be one of {', '.join(SETTINGS)}, got {', '.join(sorted(unknown))}"
            if unknown
            else f"minutes must be more than 0, got {parsed.minutes}"
        )
    return parsed


def main() -> int:
    chosen = arguments()
    targets = chosen.targets or list(SETTINGS)
    planned = jobs(chosen.minutes, targets)
    begin = time.monotonic()
    try:
        for target in targets:
            if target in FAULTS:
                find_fault(target)
                print(f"{target} finds the seeded bug", flush=True)
        with Progress(console=Console(stderr=True)) as progress:
            found = list(results(planned, progress))
        for target in set(targets) & set(FAULTS) if chosen.renew else ():
            renew(target)
    except FindError as error:
        print(error)
        return 1
    if targets == list(SETTINGS) and chosen.minutes * 60 >= RECORDED:
        record(found, (time.monotonic() - begin) / 60)
    return 0


if __name__ == "__main__":
    sys.exit(main())
