"""``python -m memrt stats``: print the statistics and explain each field."""

from __future__ import annotations

import argparse
import ast
import inspect
import itertools
import json

import memrt
from memrt._stats import snapshot
from memrt._stats.snapshot import BYTES
from memrt.commands.output.table import text_table

HELP = "Explain the statistics, with the values of a new process."

EXAMPLES = """\
exit status: 0

examples:
  python -m memrt stats
  python -m memrt stats --json
  python -m memrt run script.py    print the statistics of a program
"""


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON")


def execute(arguments: argparse.Namespace) -> None:
    numbers = memrt.stats().to_dict()
    if arguments.json:
        print(json.dumps(numbers, indent=2))
        return
    meanings = field_meanings()
    header = ("field", "unit", "now", "meaning")
    rows = [(name, _unit(name), f"{numbers[name]:,}", meanings[name]) for name in numbers]
    print(text_table([header, *rows], right=[2]))


def _unit(name: str) -> str:
    return "bytes" if name in BYTES else "count"


def field_meanings() -> dict[str, str]:
    """Return the docstring of each field of Stats, parsed from the source of the class."""
    classes = [
        n for n in ast.parse(inspect.getsource(snapshot)).body if isinstance(n, ast.ClassDef)
    ]
    body = next(node.body for node in classes if node.name == "Stats")
    meanings = {}
    for field, text in itertools.pairwise(body):
        if isinstance(field, ast.AnnAssign) and isinstance(text, ast.Expr):
            meanings[ast.unparse(field.target)] = ast.literal_eval(text.value)
    return meanings
