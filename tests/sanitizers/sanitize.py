"""Run the tests under sanitizers and Valgrind. `./dev sanitize` calls the script.

Each tool must first detect a set of seeded bugs. If a tool misses a seeded bug, the tool fails and
the tests do not run, because a clean result would prove nothing. Tools: {tools}. Default: all.
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
from dataclasses import dataclass
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "suites"))
sys.path.append(str(Path(__file__).resolve().parents[1] / "reliability"))
import page
from environment import StepError
from tools import HERE, TOOLS, WORK, Tool, Watched


@dataclass(frozen=True)
class Finding:
    """The result of one tool: missed seeded bugs, test reports, CPU seconds and the commit."""

    tool: Tool
    overlooked: list[str]
    watched: Watched
    seconds: int
    commit: str  # the commit of the build

    @property
    def is_good(self) -> bool:
        return not self.overlooked and not self.watched.reports and self.watched.tests > 0

    def row(self) -> list[object]:
        tool = self.tool
        seen = ", ".join(fault for fault in tool.planted if fault not in self.overlooked)
        tests, reports = self.watched.tests, len(self.watched.reports)
        return [tool.title, tool.version(), seen, tests, reports, self.seconds, self.commit]


def use(tool: Tool, whole: bool) -> Finding:
    """Build memrt, check the tool against the seeded bugs, and run the tests."""
    print(f"→ {tool.title}", flush=True)
    commit = page.commit()
    tool.build(whole)
    before = processor_seconds()
    overlooked = tool.overlooked()
    watched = tool.watch(whole) if not overlooked else Watched(0, [])
    finding = Finding(tool, overlooked, watched, round(processor_seconds() - before), commit)
    print("\n".join(lines(finding)), flush=True)
    return finding


def processor_seconds() -> float:
    """Return the CPU seconds of all finished child processes.

    Other work on the machine hardly changes CPU time, unlike elapsed time.
    """
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def lines(finding: Finding) -> list[str]:
    """Return a readable report of one tool."""
    awake = [f"misses the seeded bug {fault!r}" for fault in finding.overlooked]
    count = f"{finding.watched.tests} tests, {len(finding.watched.reports)} reports"
    return [*awake, *finding.watched.reports, f"{count}, {finding.seconds} s of processor"]


ABOUT = (
    "The tests under tools that find bugs in memory, threads and C code, by `./dev sanitize "
    "--all`. The tests under a tool count only after the tool has found the seeded bugs in blocks "
    "of memrt. The suppressions are in `tests/sanitizers`, each with a reason."
)


def record(findings: list[Finding]) -> None:
    """Write the page, with saved rows of tools from earlier runs."""
    WORK.mkdir(parents=True, exist_ok=True)
    for finding in findings:
        kept_in(finding.tool).write_text(json.dumps(finding.row()), encoding="utf-8")
    columns = ("tool and tests", "version", "seeded bugs found", "tests", "reports")
    files = [kept_in(tool) for tool in TOOLS]
    rows = [json.loads(file.read_text(encoding="utf-8")) for file in files if file.exists()]
    page.record(
        "sanitizers",
        "Sanitizers and Valgrind",
        ABOUT,
        {"suppressions": suppressions()},
        (*columns, "processor seconds", "commit"),
        rows,
    )


def kept_in(tool: Tool) -> Path:
    return WORK / f"{tool.name}.json"


def suppressions() -> int:
    """Return the number of suppressions in all .supp files."""
    texts = (file.read_text(encoding="utf-8") for file in sorted(HERE.glob("*.supp")))
    return sum(
        line.startswith(("{", "leak:", "thread:")) for text in texts for line in text.splitlines()
    )


def main() -> int:
    names = [tool.name for tool in TOOLS]
    parser = argparse.ArgumentParser(
        prog="./dev sanitize", description=__doc__.format(tools=", ".join(names))
    )
    parser.add_argument("tools", nargs="*", metavar="TOOL", help="tool to run; default: all")
    parser.add_argument(
        "--all", action="store_true", help="run all tests but slow ones of Python, not only the "
        "part of the gate, and write the results into docs/reliability.md",
    )  # fmt: skip
    options = parser.parse_args()
    if unknown := set(options.tools) - set(names):
        parser.error(f"TOOL must be one of {', '.join(names)}, got {', '.join(sorted(unknown))}")
    chosen = [tool for tool in TOOLS if tool.name in (options.tools or names)]
    try:
        findings = [use(tool, options.all) for tool in chosen]
    except StepError as error:
        print(f"sanitize: {error}", file=sys.stderr)
        return 1
    if options.all:
        record(findings)
    return 0 if all(finding.is_good for finding in findings) else 1


if __name__ == "__main__":
    sys.exit(main())
