"""Find the public objects, and run the examples of their docstrings."""

from __future__ import annotations

import doctest
import functools
import importlib
import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

PACKAGES = (
    *("memrt", "memrt.types", "memrt.debug", "memrt.telemetry", "memrt.testing", "memrt.numba"),
    *("memrt.numba.refprune", "memrt.adaptors", "memrt.cuda", "memrt.workers", "memrt.dask"),
)

PROPERTIES = (property, functools.cached_property)
PROTOCOLS = re.compile("__(array|arrow|cuda|dlpack|getitem|memrt)")

# Classes with a constructor that only memrt calls.
MADE_BY_MEMRT = {"memrt.types.Scope", "memrt.debug.LeakError"}


@dataclass(frozen=True)
class Documented:
    """Public object with a docstring."""

    name: str
    value: Any

    @property
    def text(self) -> str:
        return inspect.getdoc(self.value) or ""

    @property
    def is_member(self) -> bool:
        return self.name.rpartition(".")[0] not in PACKAGES

    @property
    def has_examples(self) -> bool:
        return ">>>" in self.text

    @property
    def needs_cuda(self) -> bool:
        """Whether the examples need a CUDA driver; tests/cuda runs these examples."""
        return self.name.startswith(("memrt.cuda.", "memrt.from_cuda_array_interface"))

    @property
    def is_built_by_users(self) -> bool:
        """Whether users call the object. Classes of results show fields instead of parameters."""
        if not inspect.isclass(self.value):
            return True
        own = vars(self.value)
        is_result = "__dataclass_fields__" in own or "_fields" in own
        return not is_result and self.name not in MADE_BY_MEMRT


def members(name: str, cls: type) -> Iterator[Documented]:
    """Yield the public methods and properties of a class, and methods of exchange protocols.

    Members of base classes in memrt count too.
    """
    bases = [base for base in reversed(cls.__mro__[1:]) if base.__module__.startswith("memrt.")]
    found = {member: value for each in (*bases, cls) for member, value in vars(each).items()}
    for member, value in found.items():
        is_attribute = inspect.isgetsetdescriptor(value) or isinstance(value, PROPERTIES)
        is_public = not member.startswith("_") or PROTOCOLS.match(member)
        if is_public and (is_attribute or inspect.isroutine(value)):
            yield Documented(f"{name}.{member}", getattr(cls, member))


def documented() -> list[Documented]:
    """Return all public functions, classes, methods and properties."""
    found = []
    for package in PACKAGES:
        module = importlib.import_module(package)
        for name in module.__all__:
            value = getattr(module, name)
            if inspect.ismodule(value) or isinstance(value, int):
                continue
            found.append(Documented(f"{package}.{name}", value))
            if inspect.isclass(value):
                found += members(f"{package}.{name}", value)
    return found


def run_examples(thing: Documented) -> int:
    """Run the examples of a docstring. Return the number of examples that ran; raise on failure."""
    test = doctest.DocTestParser().get_doctest(thing.text, {}, thing.name, None, 0)
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    report: list[str] = []
    runner.run(test, out=report.append)
    assert runner.failures == 0, "".join(report)
    return len(test.examples)
