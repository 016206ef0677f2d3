"""List Numba's own tests for the CPU.

usage: discover.py OUT.json, which becomes {"module.Class": [test id, ...], ...}
"""

import importlib
import json
import pkgutil
import sys
import unittest

import numba.tests

LEFT_OUT = ("numba.tests.gdb", "numba.tests.doc_examples.", "numba.tests.pycc_distutils_usecase.")


def tests_in(suite):
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from tests_in(test)
        else:
            yield test


def modules():
    for info in pkgutil.walk_packages(numba.tests.__path__, "numba.tests."):
        if info.ispkg or info.name.startswith(LEFT_OUT):
            continue
        try:
            yield importlib.import_module(info.name)
        except (Exception, SystemExit) as error:
            print(f"left out: {info.name}: {error}", file=sys.stderr)


def main(out):
    classes = {}
    for module in modules():
        for test in tests_in(unittest.defaultTestLoader.loadTestsFromModule(module)):
            name = f"{type(test).__module__}.{type(test).__qualname__}"
            classes.setdefault(name, set()).add(test.id())
    with open(out, "w") as file:
        json.dump({name: sorted(ids) for name, ids in sorted(classes.items())}, file, indent=1)


if __name__ == "__main__":
    main(sys.argv[1])
