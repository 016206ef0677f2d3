"""The tests under sanitizers and Valgrind: the work behind `./dev sanitize`.

Each tool must first find faults that were planted for it; one that does not is not awake, and what
it does not say of the tests means nothing. Tools: {tools}. Without a name, all of them.
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
    """What became of a tool."""

    tool: Tool
    overlooked: list[str]
    watched: Watched
    seconds: int
    commit: str  # that was built

    @property
    def is_good(self) -> bool:
        return not self.overlooked and not self.watched.reports and self.watched.tests > 0

    def row(self) -> list[object]:
        tool = self.tool
        seen = ", ".join(fault for fault in tool.planted if fault not in self.overlooked)
        tests, reports = self.watched.tests, len(self.watched.reports)
        return [tool.title, tool.version(), seen, tests, reports, self.seconds, self.commit]


def use(tool: Tool, whole: bool) -> Finding:
    """Build, see that the tool is awake, and run the tests."""
    print(f"→ {tool.title}", flush=True)
    commit = page.commit()
    tool.build()
    before = processor_seconds()
    overlooked = tool.overlooked()
    watched = tool.watch(whole) if not overlooked else Watched(0, [])
    finding = Finding(tool, overlooked, watched, round(processor_seconds() - before), commit)
    print("\n".join(lines(finding)), flush=True)
    return finding


def processor_seconds() -> float:
    """Of all that was run so far: this says the same on a machine with other work."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def lines(finding: Finding) -> list[str]:
    """A report for people."""
    awake = [f"does not see the planted fault {fault!r}" for fault in finding.overlooked]
    count = f"{finding.watched.tests} tests, {len(finding.watched.reports)} reports"
    return [*awake, *finding.watched.reports, f"{count}, {finding.seconds} s of processor"]


ABOUT = (
    "The tests under tools that find faults of memory, threads and the language, by `./dev "
    "sanitize --all`. A tool is believed after it has found faults that were planted for it in "
    "blocks of memrt. Suppressions, each with its reason, stand in `tests/sanitizers`."
)


def record(findings: list[Finding]) -> None:
    """Write the page, with the rows of tools that were run before."""
    WORK.mkdir(parents=True, exist_ok=True)
    for finding in findings:
        kept_in(finding.tool).write_text(json.dumps(finding.row()), encoding="utf-8")
    columns = ("tool and tests", "version", "planted faults found", "tests", "reports")
    files = [kept_in(tool) for tool in TOOLS]
    rows = [json.loads(file.read_text(encoding="utf-8")) for file in files if file.exists()]
    page.record(
        "sanitizers",
        "Sanitizers and Valgrind",
        ABOUT,
        {"suppressions": suppressions()},
        (*columns, "processor seconds", "of commit"),
        rows,
    )


def kept_in(tool: Tool) -> Path:
    return WORK / f"{tool.name}.json"


def suppressions() -> int:
    """How many there are."""
    texts = (file.read_text(encoding="utf-8") for file in sorted(HERE.glob("*.supp")))
    return sum(line.startswith(("{", "leak:")) for text in texts for line in text.splitlines())


def main() -> int:
    names = [tool.name for tool in TOOLS]
    parser = argparse.ArgumentParser(
        prog="./dev sanitize", description=__doc__.format(tools=", ".join(names))
    )
    parser.add_argument("tools", nargs="*", metavar="TOOL", help="of those above")
    parser.add_argument(
        "--all", action="store_true", help="every test, where the gate runs a part; "
        "what is found goes into docs/reliability.md",
    )  # fmt: skip
    options = parser.parse_args()
    if unknown := set(options.tools) - set(names):
        parser.error(f"there is no tool {', '.join(sorted(unknown))}")
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
