"""Record the rules whose tests passed on a GPU, for docs/reference/gpu.json."""

from __future__ import annotations

import ctypes
import datetime
import importlib.metadata
import json
import platform
from collections import Counter
from pathlib import Path
from typing import Any

RULE = "rule"
LIBRARIES = ("numpy", "cupy-cuda12x", "cupy-cuda13x", "numba-cuda", "torch", "jax")


def device_name() -> str:
    """Return the name of the first device, by the driver."""
    driver = ctypes.CDLL("libcuda.so.1")
    name = ctypes.create_string_buffer(200)
    assert driver.cuDeviceGetName(name, 200, 0) == 0
    return name.value.decode()


def versions() -> list[str]:
    """Return the versions of Python and of the installed libraries that use the GPU."""
    found = [f"Python {platform.python_version()}"]
    for library in LIBRARIES:
        try:
            found.append(f"{library} {importlib.metadata.version(library)}")
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


class Recorder:
    """A pytest plugin that counts passed tests by their mark `rule`. Writes the counts at the end,
    unless a test failed.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.passed: Counter[str] = Counter()
        self.failed = 0

    def pytest_itemcollected(self, item: Any) -> None:
        item.user_properties.extend((RULE, mark.args[0]) for mark in item.iter_markers(RULE))

    def pytest_runtest_logreport(self, report: Any) -> None:
        self.failed += report.failed
        if report.when == "call" and report.passed:
            self.passed.update(value for name, value in report.user_properties if name == RULE)

    def pytest_sessionfinish(self) -> None:
        if self.failed == 0:
            rules = {rule: {"passed": count} for rule, count in sorted(self.passed.items())}
            today = datetime.datetime.now(datetime.timezone.utc).date().isoformat()
            found = {"date": today, "device": device_name(), "versions": versions(), "rules": rules}
            self.path.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
