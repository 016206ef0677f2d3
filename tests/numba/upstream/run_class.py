"""Run the given tests in this process and write their outcomes as JSON.

usage: run_class.py OUT.json TEST_ID...

The program also writes OUT.helpers, a list of the helpers that compiled code was linked to.
"""

import json
import sys
import time
import unittest
from pathlib import Path


class Recorder(unittest.TestResult):
    """Keep the outcome, a detail text and the seconds of each test."""

    def __init__(self):
        super().__init__()
        self.outcomes = {}
        self._began = 0.0

    def startTest(self, test):  # noqa: N802
        super().startTest(test)
        self._began = time.monotonic()
        self._note(test, "ok")

    def _note(self, test, outcome, detail=""):
        seconds = round(time.monotonic() - self._began, 3)
        self.outcomes[test.id()] = {"outcome": outcome, "detail": detail, "seconds": seconds}

    def stopTest(self, test):  # noqa: N802
        super().stopTest(test)
        noted = self.outcomes[test.id()]
        noted["seconds"] = round(time.monotonic() - self._began, 3)

    def addError(self, test, err):  # noqa: N802
        self._note(test, "error", self._exc_info_to_string(err, test))

    def addFailure(self, test, err):  # noqa: N802
        self._note(test, "failed", self._exc_info_to_string(err, test))

    def addSkip(self, test, reason):  # noqa: N802
        self._note(test, "skipped", reason)

    def addExpectedFailure(self, test, err):  # noqa: N802
        self._note(test, "expected failure")

    def addUnexpectedSuccess(self, test):  # noqa: N802
        self._note(test, "unexpected success")

    def addSubTest(self, test, subtest, err):  # noqa: N802
        if err is not None:
            self._note(test, "failed", self._exc_info_to_string(err, test))


def watch_helpers():
    """Hook Numba's code generator. Return a set that collects the names of linked helpers."""
    from numba.core import codegen

    linked = set()
    finalize = codegen.CPUCodeLibrary.finalize

    def watching(self):
        finalize(self)
        declared = (function.name for function in self._final_module.functions
                    if function.is_declaration)  # fmt: skip
        linked.update(name for name in declared if name.lower().startswith(("nrt_", "_nrt_")))

    codegen.CPUCodeLibrary.finalize = watching
    return linked


def main(out, names):
    linked = watch_helpers()
    recorder = Recorder()
    unittest.defaultTestLoader.loadTestsFromNames(names).run(recorder)
    Path(out).with_suffix(".helpers").write_text("\n".join(sorted(linked)))
    with open(out, "w") as file:
        json.dump(recorder.outcomes, file)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
