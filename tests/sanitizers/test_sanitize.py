"""Tests of sanitize.py: a tool must find its seeded bugs, and every report counts as a fault."""

from __future__ import annotations

import subprocess

import page
import pytest
import sanitize
from tools import TOOLS, OfPython, Tool, Watched, cases_in

SOME_TESTS = Watched(3, [])


class Double(Tool):
    """Test double of a tool, with a fixed report for each seeded bug and a fixed test result."""

    name = "double"
    title = "a double"
    planted = {"overrun": "invalid write", "leak": "lost"}  # noqa: RUF012

    def __init__(self, says: str, watched: Watched = SOME_TESTS) -> None:
        self.says, self.watched, self.watching = says, watched, False

    def version(self) -> str:
        return "1"

    def build(self, whole: bool) -> None:
        pass

    def report_of(self, fault: str) -> str:
        return self.says

    def watch(self, whole: bool) -> Watched:
        self.watching = True
        return self.watched


def test_tool_that_misses_a_seeded_bug_fails(capsys):
    tool = Double("invalid write")
    finding = sanitize.use(tool, whole=False)
    assert not finding.is_good
    assert not tool.watching
    assert "misses the seeded bug 'leak'" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("watched", "good"),
    [(SOME_TESTS, True), (Watched(3, ["a race"]), False), (Watched(0, []), False)],
    ids=["clean", "a report", "no test"],
)
def test_tool_passes_if_tests_ran_without_reports(watched, good):
    assert sanitize.use(Double("invalid write, lost", watched), whole=False).is_good is good


def test_every_tool_has_existing_seeded_bugs():
    for tool in TOOLS:
        assert tool.planted
        for fault in tool.planted:
            suffix = "py" if tool.name == "python" else "c"
            assert (sanitize.HERE / "planted" / f"{fault}.{suffix}").exists()


def test_figures_of_a_tool_stay_when_another_is_run(tmp_path, monkeypatch):
    monkeypatch.setattr(sanitize, "WORK", tmp_path)
    monkeypatch.setattr(page, "uncommitted", list)
    monkeypatch.setattr(page, "PAGE", tmp_path / "page.md")
    monkeypatch.setattr(page, "FIGURES", tmp_path / "figures")
    first, second = Double("invalid write, lost"), Double("invalid write, lost", Watched(7, []))
    first.name, first.title = "first", "The first"
    second.name, second.title = "second", "The second"
    monkeypatch.setattr(sanitize, "TOOLS", (first, second))
    sanitize.record([sanitize.use(first, whole=True)])
    sanitize.record([sanitize.use(second, whole=True)])
    text = (tmp_path / "page.md").read_text()
    assert "| The first | 1 | overrun, leak | 3 | 0 |" in text
    assert "| The second | 1 | overrun, leak | 7 | 0 |" in text


def test_what_junit_says_is_read_and_what_was_skipped_is_no_test(tmp_path):
    file = tmp_path / "junit.xml"
    file.write_text(
        "<testsuites><testsuite>"
        '<testcase classname="a" name="good"/>'
        '<testcase classname="a" name="bad"><failure>why</failure></testcase>'
        '<testcase classname="a" name="wrong"><error>how</error></testcase>'
        '<testcase classname="a" name="left out"><skipped/></testcase>'
        "</testsuite></testsuites>"
    )
    found = [(case.name, case.failed, case.said) for case in cases_in(file)]
    assert found == [("a::good", False, ""), ("a::bad", True, "why"), ("a::wrong", True, "how")]


def test_notice_about_a_thread_is_no_report_and_a_leak_is_one(tmp_path):
    tool = OfPython()
    tool._reports = tmp_path
    notice = "==5==Running thread 4 was not suspended. False leaks are possible.\n"
    (tmp_path / "report.1").write_text(notice * 2)
    (tmp_path / "report.2").write_text(notice + "==5==ERROR: LeakSanitizer: detected memory leaks")
    assert [text[-5:] for text in tool._found()] == ["leaks"]


def test_compilers_run_without_the_preloaded_sanitizer(tmp_path):
    environment = OfPython()._environment()
    assert "libasan" in environment["LD_PRELOAD"]
    source = tmp_path / "empty.c"
    source.touch()
    show = 'echo "preloaded: $LD_PRELOAD"'  # in place of the compiler proper
    command = ["gcc", "-E", "-wrapper", f"sh,-c,{show}", source]
    assert subprocess.check_output(command, env=environment, text=True) == "preloaded: \n"
