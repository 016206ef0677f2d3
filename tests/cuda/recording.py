"""What of the rules' tests ran on a GPU, for docs/reliability/gpu.json."""

from __future__ import annotations

import ctypes
import importlib.metadata
import json
import platform
import re
from collections import Counter
from pathlib import Path
from typing import Any

RULE = re.compile(r"::test_([a-z])(\d\d)_")
LIBRARIES = ("numpy", "cupy-cuda12x", "cupy-cuda13x", "numba-cuda", "torch")


def device_name() -> str:
    """The first device's, by the driver."""
    driver = ctypes.CDLL("libcuda.so.1")
    name = ctypes.create_string_buffer(200)
    assert driver.cuDeviceGetName(name, 200, 0) == 0
    return name.value.decode()


def versions() -> list[str]:
    """Of Python, and of what is installed that uses the GPU."""
    found = [f"Python {platform.python_version()}"]
    for library in LIBRARIES:
        try:
            found.append(f"{library} {importlib.metadata.version(library)}")
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


class Recorder:
    """A plugin of pytest that counts outcomes by rule, and writes them at the end."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.passed: Counter[str] = Counter()
        self.failed = 0

    def pytest_runtest_logreport(self, report: Any) -> None:
        self.failed += report.failed
        rule = RULE.search(report.nodeid)
        if rule is not None and report.when == "call" and report.passed:
            self.passed[f"{rule[1].upper()}{int(rule[2])}"] += 1

    def pytest_sessionfinish(self) -> None:
        if self.failed == 0:
            rules = {rule: {"passed": count} for rule, count in sorted(self.passed.items())}
            found = {"device": device_name(), "versions": versions(), "rules": rules}
            self.path.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
