"""Have libFuzzer play inputs of its own against the fuzzers of tests/fuzz.

First each fuzzer is linked with a copy of one source file in which a fault is planted, and must
find it. Then all fuzzers run, two at a time, each under its settings, from the committed inputs and
from what earlier runs kept in build/fuzz. An input that fails is shown, with the command that
repeats it. Five minutes or more without a find leave their figures in docs/reliability.md.
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
HYPOTHESIS = {  # targets that are tests
    "stateful": "tests/python/test_stateful.py",
    "foreign": "tests/python/test_foreign.py",
}
AT_ONCE = 2
GRACE = 120  # more seconds until a fuzzer hangs
RECORDED = 300  # seconds from which on fuzzing says enough to be recorded
FAULT_SECONDS = 60  # within which a planted fault is found, mostly at once

# What each target is run under; under AddressSanitizer memrt keeps no memory unless it is told to.
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
    """A text of a source file and what stands there in the copy."""

    path: str
    right: str
    wrong: str


FAULTS = {
    "table": Fault(
        "runtime/meminfo/raw.c",
        "memcpy(own, mi->data, memrt__size_min(mi->size, size));",
        "memcpy(own, mi->data, memrt__size_min(mi->size, size) / 2);",
    ),
    "sizes": Fault(
        "runtime/meminfo/block.c",
        "if (!memrt__size_add(out->lead, memrt__size_max(size, 1), &out->bytes)) {",
        "if ((out->bytes = out->lead + memrt__size_max(size, 1)) == 0) {",
    ),
    "structs": Fault(
        "runtime/meminfo/meminfo.c",
        "memrt__size_min(options->struct_size, sizeof(*out))",
        "sizeof(*out)",
    ),
    "options": Fault("runtime/base/options.c", "&& *value <= most;", ";"),
    "tensors": Fault(
        "runtime/dlpack.c",
        "size_t *end = stride < 0 ? &reach->before : &reach->after;",
        "size_t *end = &reach->after;",
    ),
    "columns": Fault("runtime/arrow.c", "out->first_bit = array->offset % 8;", ""),
}


@dataclass(frozen=True)
class Job:
    """One target under one setting for some seconds."""

    target: str
    setting: str
    seconds: int

    @property
    def name(self) -> str:
        return f"{self.target} {self.setting}"


@dataclass(frozen=True)
class Result:
    """What a job did: inputs, or examples; places of memrt's code that they reached; 0: unknown."""

    job: Job
    executed: int
    reached: int


class FindError(Exception):
    """A fuzzer ended otherwise than it should, with what it said."""


def environment(setting: str) -> dict[str, str]:
    variables = {
        "ASAN_OPTIONS": "allocator_may_return_null=1:quarantine_size_mb=16",
        "UBSAN_OPTIONS": "print_stacktrace=1",
    }
    name, _, value = setting.partition("=")
    return {**os.environ, **variables, name: value}


def tail(text: str, lines: int = 60) -> str:
    return "\n".join(text.rstrip().splitlines()[-lines:])


def run(command: list[object], setting: str, seconds: float) -> subprocess.CompletedProcess[str]:
    """Run a command; one that hangs is a find."""
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
        raise FindError(f"hangs: {setting} {shlex.join(words)}") from hung


def unpack(target: str, folder: Path) -> None:
    """Put the committed inputs, each a line of hexadecimal digits, where a fuzzer reads files."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = (CORPUS / f"{target}.txt").read_text(encoding="ascii").split()
    for number, line in enumerate(lines):
        (folder / f"committed-{number}").write_bytes(bytes.fromhex(line))


def renew(target: str) -> None:
    """Write the committed inputs anew: few that reach all that the kept ones reach."""
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
    """From the committed inputs; what is new goes to `kept`."""
    unpack(target, kept)
    finds = BUILD / "finds"
    finds.mkdir(exist_ok=True)
    options: dict[str, object] = {
        "max_total_time": seconds,
        "max_len": 600,
        "len_control": 20,
        "detect_leaks": 0,  # after each input; they are looked for at the end
        "timeout": 20,
        "print_final_stats": 1,
        "artifact_prefix": f"{finds}/{target}-",
    }
    words = CORPUS.parent / f"{target}.dict"
    if words.exists():
        options["dict"] = words
    return [program, *(f"-{k}={v}" for k, v in options.items()), kept]


def input_of(output: str) -> str | None:
    """The file that an input was written to that failed."""
    found = re.search(r"Test unit written to (\S+)", output)
    return found[1] if found else None


def figure(pattern: str, output: str) -> int:
    found = re.findall(pattern, output)
    return int(found[-1]) if found else 0


def fuzz(job: Job) -> Result:
    """Run one of the fuzzers; raises FindError when it ends otherwise than by its time."""
    program = BUILD / f"fuzz_{job.target}"
    kept = BUILD / "kept" / job.target
    result = run(fuzzer_command(program, job.target, job.seconds, kept), job.setting, job.seconds)
    if result.returncode != 0:
        again = f"{job.setting} {program} {input_of(result.stdout) or kept}"
        raise FindError(f"{tail(result.stdout)}\n\n{job.name} fails; again:\n{again}")
    executed = figure(r"stat::number_of_executed_units: (\d+)", result.stdout)
    if executed == 0:
        raise FindError(f"{tail(result.stdout)}\n\n{job.name} ran nothing")
    return Result(job, executed, figure(r"cov: (\d+)", result.stdout))


def play(job: Job) -> Result:
    """Run Hypothesis with one seed after the other while there is time."""
    end, executed, seed = time.monotonic() + job.seconds, 0, time.time_ns() % 10**6
    while executed == 0 or time.monotonic() < end:
        test = [HYPOTHESIS[job.target], "-p", "no:cacheprovider", "-q"]
        options = ["--hypothesis-profile=long", f"--hypothesis-seed={seed}"]
        statistics = ["--hypothesis-show-statistics"]
        command = [sys.executable, "-m", "pytest", *test, *options, *statistics]
        result = run(command, job.setting, 600)
        if result.returncode != 0:
            again = f"{job.setting} {shlex.join(command)}"
            raise FindError(f"{tail(result.stdout, 200)}\n\n{job.name} fails; again:\n{again}")
        passing = re.findall(r"(\d+) passing, \d+ failing", result.stdout)
        if not passing:
            raise FindError(f"{tail(result.stdout)}\n\n{job.name} ran nothing")
        executed += sum(map(int, passing))
        seed += 1
    return Result(job, executed, 0)


def perform(job: Job) -> Result:
    return play(job) if job.target in HYPOTHESIS else fuzz(job)


def compile_commands() -> list[dict[str, str]]:
    """What the build compiled, and how."""
    return json.loads((BUILD / "compile_commands.json").read_text(encoding="utf-8"))


def compile_command(path: str) -> list[str]:
    """How the build compiled a source file."""
    [entry] = [each for each in compile_commands() if each["file"] == str(ROOT / path)]
    return shlex.split(entry["command"])


def objects_of(target: str) -> list[str]:
    """The objects of a target alone, without those of the library."""
    folder = f"CMakeFiles/fuzz_{target}.dir/"
    commands = [shlex.split(each["command"]) for each in compile_commands()]
    outputs = [command[command.index("-o") + 1] for command in commands]
    return [output for output in outputs if output.startswith(folder)]


def with_fault(target: str, fault: Fault) -> Path:
    """The target, linked with a faulty copy of one file in front of memrt's own."""
    text = (ROOT / fault.path).read_text(encoding="utf-8")
    if text.count(fault.right) != 1:
        raise FindError(f"{fault.path} has not one '{fault.right}' to plant a fault in")
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
    """Raises FindError unless the target finds what is planted."""
    program = with_fault(target, FAULTS[target])
    command = fuzzer_command(program, target, FAULT_SECONDS, BUILD / "faulty" / target)
    result = run(command, SETTINGS[target][0], FAULT_SECONDS)
    found = input_of(result.stdout)
    if result.returncode == 0 or found is None:
        raise FindError(f"{tail(result.stdout)}\n\n{target} does not find {FAULTS[target]}")
    Path(found).unlink()


def jobs(minutes: float, targets: Iterable[str]) -> list[Job]:
    """All that belong to the targets, in so much time together."""
    pairs = [(target, setting) for target in targets for setting in SETTINGS[target]]
    seconds = max(1, round(minutes * 60 * AT_ONCE / len(pairs)))
    return [Job(target, setting, seconds) for target, setting in pairs]


def results(planned: list[Job], progress: Progress) -> Iterator[Result]:
    """Those of all jobs, as they come; the first find ends it when the others have ended."""
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
        "The fuzzers of `tests/fuzz` by libFuzzer, under AddressSanitizer and "
        "UndefinedBehaviorSanitizer, and two tests of Python by Hypothesis: `./dev fuzz`. Every "
        "fuzzer of C found the fault that was planted for it, and none in memrt.",
        {"minutes": round(minutes), "inputs": sum(result.executed for result in found)},
        ["target", "under", "inputs", "places of the code reached"],
        rows,
    )


def arguments() -> argparse.Namespace:
    summary, about = __doc__.split("\n\n", 1)
    parser = argparse.ArgumentParser(prog="./dev fuzz", description=summary, epilog=about)
    parser.add_argument("minutes", nargs="?", type=float, default=10, help="in all; default 10")
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=f"of {', '.join(SETTINGS)}")
    parser.add_argument("--renew", action="store_true",
                        help="write the committed inputs anew from all that were kept")  # fmt: skip
    parsed = parser.parse_args()
    unknown = set(parsed.targets) - set(SETTINGS)
    if unknown or not parsed.minutes > 0:
        parser.error(f"unknown: {', '.join(unknown)}" if unknown else "there must be time")
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
                print(f"{target} finds the planted fault", flush=True)
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
