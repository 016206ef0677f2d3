"""Measure memrt's refcount pruner against llvmlite's pass, and print tables in Markdown.

The corpus holds the modules that Numba prunes while a sample of its own tests runs. The program
runs in the environment of `./dev suites numba`.

No library compares two passes of Numba: pyperf measures whole programs.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
import unittest
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path

HERE = Path(__file__).resolve().parent
TESTS = HERE.parent
sys.path += [str(TESTS / path) for path in ("suites", "numba/upstream", "numba/support")]

import llvmlite.binding as llvm  # noqa: E402
import numba  # noqa: E402
from flow_text import prune_by_stock  # noqa: E402
from memrt.numba import refprune  # noqa: E402
from numba.core import codegen, config  # noqa: E402
from suite import CI_PART, Suite  # noqa: E402

WORK = TESTS.parent / "build" / "numba"
SAMPLE = 3  # each third test
ROUNDS = 5
FIGURES = ("compile", "run", "refops")


@dataclass
class Corpus:
    """Modules before pruning, and the seconds of both pruners on each."""

    texts: dict[str, None] = field(default_factory=dict)

    def collect(self) -> int:
        """Run Numba's tests, and keep each module that has a refcount call."""
        config.LLVM_REFPRUNE_PASS = 0
        stock, codegen.remove_redundant_nrt_refct = codegen.remove_redundant_nrt_refct, self._keep
        result = unittest.TestResult()
        sample().run(result)
        codegen.remove_redundant_nrt_refct = stock
        assert not result.failures, result.failures[0]
        return result.testsRun

    def _keep(self, module):
        text = str(module)
        if "call void @NRT_" in text:
            self.texts[text] = None
        prune_by_stock(module)
        return module


def sample() -> unittest.TestSuite:
    classes = Suite(Path(sys.executable), WORK).classes()
    names = [test for name, tests in classes.items() for test in tests
             if any(fnmatch(name, f"*.{part}") for part in CI_PART)]  # fmt: skip
    return unittest.defaultTestLoader.loadTestsFromNames(names[::SAMPLE])


def removed_by_stock(module) -> int:
    before = llvm.dump_refprune_stats()
    prune_by_stock(module)
    return sum(llvm.dump_refprune_stats() - before)


def timed(call, *arguments):
    began = time.process_time()
    result = call(*arguments)
    return result, time.process_time() - began


def table_of_corpus(corpus: Corpus, tests: int) -> str:
    counts = dict.fromkeys(("llvmlite", "premise", "strict", "rest"), 0)
    seconds = {"llvmlite": 0.0, "premise": 0.0, "strict": 0.0}
    for text in corpus.texts:
        removed, spent = timed(removed_by_stock, llvm.parse_assembly(text))
        counts["llvmlite"] += removed
        seconds["llvmlite"] += spent
        for mode in refprune.MODES:
            module = llvm.parse_assembly(text)
            pruned, spent = timed(prune_in_mode, module, mode)
            counts[mode] += refops(text) - refops(str(pruned))
            seconds[mode] += spent
            if mode == "premise":
                counts["rest"] += removed_by_stock(pruned)
    total = sum(map(refops, corpus.texts))
    rows = [("llvmlite", "llvmlite's pass"), ("premise", "memrt, premise mode"),
            ("strict", "memrt, strict mode")]  # fmt: skip
    lines = [
        f"{len(corpus.texts):,} modules with {total:,} refcount calls, "
        f"from {tests} of Numba's leak-checked tests:",
        "",
        "| | calls removed | of llvmlite's | ms per module |",
        "|---|---:|---:|---:|",
        *(f"| {words} | {counts[key]:,} | {counts[key] / counts['llvmlite']:.0%} "
          f"| {1000 * seconds[key] / len(corpus.texts):.1f} |" for key, words in rows),
        "",
        f"After memrt's premise mode, llvmlite's pass finds {counts['rest']} more calls.",
    ]  # fmt: skip
    return "\n".join(lines)


def prune_in_mode(module, mode):
    return refprune.prune_module(module, mode=mode)


def refops(text: str) -> int:
    return text.count("call void @NRT_incref(") + text.count("call void @NRT_decref(")


def table_of_kernels() -> str:
    runs = {key: [kernels(key) for _ in range(ROUNDS)] for key in ("0", "1")}
    lines = ["| kernel | calls left by llvmlite | by memrt | run time | compile time |",
             "|---|---:|---:|---:|---:|"]  # fmt: skip
    for run in (*runs["0"], *runs["1"]):
        run["all"] = {key: sum(kernel[key] for kernel in run.values()) for key in FIGURES}
    for name in runs["0"][0]:
        stock, ours = ([run[name] for run in runs[key]] for key in ("0", "1"))
        lines.append(
            f"| {name.replace('_', ' ')} | {stock[0]['refops']} | {ours[0]['refops']} "
            f"| {ratio(ours, stock, 'run')} | {ratio(ours, stock, 'compile')} |"
        )
    return "\n".join(lines)


def ratio(ours: list[dict], stock: list[dict], figure: str) -> str:
    """Return the ratio of medians of processor times."""
    medians = [statistics.median(run[figure] for run in runs) for runs in (ours, stock)]
    return f"{medians[0] / medians[1]:.2f}"


def kernels(key: str) -> dict:
    command = [sys.executable, HERE / "kernels.py", key]
    return json.loads(subprocess.check_output(command, text=True))


def main() -> None:
    versions = f"Numba {numba.__version__}, llvmlite {llvm.llvm_version_info[0]}"
    corpus = Corpus()
    tests = corpus.collect()
    print(f"{versions.replace('llvmlite', 'LLVM')}.", table_of_corpus(corpus, tests), sep="\n\n")
    print(
        f"\nKernels, memrt's premise mode relative to llvmlite's pass, processor time, medians of "
        f"{ROUNDS} processes:\n",
        table_of_kernels(),
        sep="\n",
    )


if __name__ == "__main__":
    main()
