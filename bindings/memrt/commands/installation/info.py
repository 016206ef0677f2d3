"""``python -m memrt info``: print versions, the library, and options in effect."""

from __future__ import annotations

import argparse
import json
import platform

import numpy

import memrt
from memrt import _memrt
from memrt.commands.output.table import text_table

HELP = "Show versions, library, options and NumPy's handler."

EXAMPLES = """\
exit status: 0

examples:
  python -m memrt info
  MEMRT_CHECK=1 python -m memrt info    show the effect of an environment variable
  python -m memrt info --json           print JSON for programs
"""


_NO_PROBES = "none: built without sys/sdt.h (Debian: systemtap-sdt-dev)"


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON")


def execute(arguments: argparse.Namespace) -> None:
    facts, options = _facts(), memrt.debug.options()
    if arguments.json:
        print(json.dumps({**facts, "options": [option._asdict() for option in options]}, indent=2))
        return
    print(text_table(facts.items()))
    print("\nOptions, as environment variables:")
    print(text_table((option.name, option.value, option.help) for option in options))


def _facts() -> dict[str, str]:
    features = _memrt.features()
    return {
        "memrt": memrt.__version__,
        "ABI": f"{features['abi_major']}.{features['abi_minor']}",
        "table": f"{features['table_bytes']} bytes",
        "checking mode": "on" if features["checking"] else "off",
        "statistics": "on" if features["counters"] else "off: built without counters",
        "probes": "alloc, free, resize, failure" if features["probes"] else _NO_PROBES,
        "tracking": "on" if _memrt.tracking_enabled() else "off",
        "library": memrt.get_library(),
        "headers": memrt.get_include(),
        "Python": platform.python_version(),
        "NumPy": numpy.__version__,
        "NumPy's handler": memrt.handler_name() or "none",
    }
