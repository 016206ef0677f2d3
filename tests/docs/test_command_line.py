"""The command-line page lists every command, and each command's help has examples, exit statuses
and a text for every option.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path

import pytest
from memrt.commands import parser

PAGE = Path(__file__).resolve().parents[2] / "docs" / "guide" / "command-line.md"
ROW = re.compile(r"^\| `([\w-]+)` \| .+ \| .+ \|$", re.MULTILINE)


def commands() -> dict[str, argparse.ArgumentParser]:
    """Return the parsers of all commands by name."""
    (verbs,) = [each for each in parser()._actions if isinstance(each, argparse._SubParsersAction)]
    return verbs.choices


def test_page_lists_exactly_the_existing_commands():
    assert sorted(ROW.findall(PAGE.read_text(encoding="utf-8"))) == sorted(commands())


@pytest.mark.parametrize("name", commands())
def test_help_has_examples_and_exit_statuses(name):
    text = commands()[name].format_help()
    assert f"memrt {name}" in text.partition("examples:")[2]
    assert "exit status" in text


@pytest.mark.parametrize("name", commands())
def test_every_option_has_a_help_text(name):
    for action in commands()[name]._actions:
        if action.help is not argparse.SUPPRESS:
            assert action.help, action.dest
