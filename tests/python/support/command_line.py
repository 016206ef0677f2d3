"""Run memrt's command line in a process."""

from __future__ import annotations

import subprocess
import sys


def run_memrt(*arguments: object, **options: object) -> subprocess.CompletedProcess[str]:
    """Run ``python -m memrt`` and return the result. `options` belong to subprocess.run()."""
    options = {"capture_output": True, "text": True, "timeout": 60, **options}
    return subprocess.run([sys.executable, "-m", "memrt", *map(str, arguments)], **options)
