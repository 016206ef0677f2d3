"""Write docs/python-reference.md from the signatures and docstrings of the installed package.

Usage: python docs/python_reference.py [--check]

With --check nothing is written; the exit status is 1 if the page does not match the package.
"""

from __future__ import annotations

import argparse
import ast
import functools
import inspect
import itertools
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import memrt
import memrt.cuda
import memrt.debug
import memrt.numba
import memrt.telemetry
import memrt.testing
import memrt.types
from memrt.commands import convert, diff, info, replay, report, run, stats, trace

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "python-reference.md"
WIDTH = 100
COMPUTED = (property, functools.cached_property)

GROUP = re.compile(r"^(\w[\w ]*): ([\w, ]+)\.$", re.MULTILINE)
LISTS = ("Parameters", "Raises", "Returns", "Warns")
ROLE = re.compile(r":\w+:`~?([\w.]+)`")
CODE = re.compile(r"``([^`]+)``")
QUOTED = re.compile(r"(: |-> )'([^']*)'")
MODULES = (
    memrt.debug,
    memrt.telemetry,
    memrt.cuda,
    memrt.testing,
    memrt.numba,
    memrt.types,
)
TYPES = "Types"


def groups() -> dict[str, list[str]]:
    """Return public names by heading of the package docstring. The remaining classes are types."""
    found = {title: names.split(", ") for title, names in GROUP.findall(memrt.__doc__)}
    grouped = {name for names in found.values() for name in names}
    rest = [name for name in memrt.__all__ if name not in grouped]
    found[TYPES] = [name for name in rest if inspect.isclass(getattr(memrt, name))]
    return found


def has_call(line: str) -> bool:
    """Return True if a docstring line starts with a signature, as in C functions."""
    return re.match(r"\w+\(", line) is not None


def signature(name: str, thing: Any) -> str:
    """Return the signature of an object, from the docstring or else from the annotations."""
    first = documentation(thing)[0]
    if has_call(first):
        return first
    text = str(inspect.signature(thing)).replace("(self, ", "(").replace("(self)", "()")
    if inspect.isclass(thing):
        text = text.removesuffix(" -> None")
    return name + QUOTED.sub(r"\1\2", text)


def folded(call: str) -> str:
    """Split a signature of more than WIDTH characters into lines with one argument each."""
    if len(call) <= WIDTH:
        return call
    head, _, rest = call.partition("(")
    inner, _, tail = rest.rpartition(")")
    arguments = "".join(f"    {argument},\n" for argument in re.split(r", (?![^\[(]*[\])])", inner))
    return f"{head}(\n{arguments}){tail}"


def documentation(thing: Any) -> list[str]:
    """Return the lines of a docstring. For a C function, the first line is the signature."""
    text = inspect.getdoc(thing)
    assert text, f"{thing!r} is not documented"
    return CODE.sub(r"`\1`", ROLE.sub(r"`\1`", text)).splitlines()


def description(thing: Any) -> list[str]:
    """Return the docstring as Markdown lines, without the signature."""
    lines = documentation(thing)
    return list(markdown(lines[has_call(lines[0]) :]))


def markdown(lines: list[str]) -> Iterator[str]:
    """Yield docstring lines as Markdown: sections of NumPy's style as lists, text and code."""
    heads = [i for i, line in enumerate(lines[1:]) if line and set(line) == {"-"}]
    yield from lines[: heads[0] if heads else len(lines)]
    for head, end in itertools.zip_longest(heads, heads[1:], fillvalue=len(lines)):
        body = lines[head + 2 : end]
        yield from (f"**{lines[head]}**", "")
        if lines[head] in LISTS:
            yield from entries(body)
        elif lines[head] == "Examples":
            yield from code(body)
        else:
            yield from body
        yield ""


def entries(body: list[str]) -> Iterator[str]:
    """Yield the entries of a section as a list: name, type and description."""
    for line in filter(None, body):
        name, _, kind = line.partition(" : ")
        is_head = not line.startswith(" ")
        yield f"- `{name}`{kind and ', ' + kind}:" if is_head else f"  {line.strip()}"


def code(body: list[str]) -> Iterator[str]:
    """Yield examples as blocks of code, with the text between the examples."""
    is_code = False
    for line in [*body, ""]:
        if not is_code and line.startswith(">>>"):
            yield "```python"
            is_code = True
        if is_code and not line:
            yield "```"
            is_code = False
        yield line


def texts_below(body: list[ast.stmt]) -> dict[str, str]:
    """Return the strings below annotated names, by name."""
    return {
        field.target.id: text.value.value
        for field, text in itertools.pairwise(body)
        if isinstance(field, ast.AnnAssign) and isinstance(text, ast.Expr)
    }


def field_texts(cls: type) -> dict[str, str]:
    """Return the strings below the fields of a Python class, by name; {} for a C class."""
    modules = [
        module
        for name, module in sys.modules.items()
        if name.startswith("memrt.") and str(getattr(module, "__file__", "")).endswith(".py")
    ]
    for module in modules:  # the public module of a type may lack the source
        if getattr(module, cls.__name__, None) is cls:
            for node in ast.parse(Path(module.__file__).read_text(encoding="utf-8")).body:
                if isinstance(node, ast.ClassDef) and node.name == cls.__name__:
                    return texts_below(node.body)
    return {}


def attributes(cls: type) -> dict[str, str | None]:
    """Return the texts of public attributes except methods, by name; None if a text is missing."""
    texts: dict[str, str | None] = dict.fromkeys(getattr(cls, "_fields", ()), "")
    texts |= field_texts(cls)
    for name, member in vars(cls).items():
        if inspect.isgetsetdescriptor(member) or isinstance(member, COMPUTED):
            texts[name] = texts.get(name) or inspect.getdoc(member)
    return {name: text for name, text in texts.items() if not name.startswith("_")}


def attribute_table(cls: type) -> list[str]:
    texts = {name: text for name, text in attributes(cls).items() if text is not None}
    rows = [f"| `{name}` | {' '.join(text.split())} |" for name, text in texts.items()]
    return ["| attribute | meaning |", "|---|---|", *rows, ""] if rows else []


def methods(cls: type) -> dict[str, Any]:
    return {
        name: member
        for name, member in vars(cls).items()
        if not name.startswith("_")
        and inspect.isroutine(member)
        and not isinstance(member, COMPUTED)
    }


def is_built_by_hand(cls: type) -> bool:
    """Return True if users call the class. Classes of mere results show no constructor."""
    own = vars(cls)
    if "__dataclass_fields__" in own or "_fields" in own:
        return False
    if isinstance(own.get("__new__"), staticmethod):
        return len(inspect.signature(cls).parameters) > 0
    return "__init__" in own


def class_entry(name: str, cls: type) -> list[str]:
    call = [f"```python\n{folded(signature(name, cls))}\n```", ""] if is_built_by_hand(cls) else []
    lines = [f"### {name}", "", *call, *description(cls), "", *attribute_table(cls)]
    for method, member in methods(cls).items():
        lines += [f"#### {name}.{method}", "", f"```python\n{signature(method, member)}\n```", ""]
        lines += [*description(member), ""]
    return lines


def function_entry(name: str, function: Any) -> list[str]:
    call = folded(signature(name, function))
    return [f"### {name}", "", f"```python\n{call}\n```", "", *description(function), ""]


def number_entry(module: Any, name: str) -> list[str]:
    text = texts_below(ast.parse(inspect.getsource(module)).body)[name]
    return [f"### {name}", "", *markdown(CODE.sub(r"`\1`", text).splitlines()), ""]


def entry(module: Any, name: str) -> list[str]:
    thing = getattr(module, name)
    if isinstance(thing, int):
        return number_entry(module, name)
    return class_entry(name, thing) if inspect.isclass(thing) else function_entry(name, thing)


def command_lines() -> Iterator[str]:
    for command in (run, report, trace, replay, diff, convert, info, stats):
        verb = command.__name__.rpartition(".")[2]
        yield from (f"### python -m memrt {verb}", "", command.HELP, "")
        yield from ("```text", command.EXAMPLES.rstrip(), "```", "")


def page() -> str:
    """Return the text of the whole reference."""
    lines = ["# Python reference", "", "Written from the package by docs/python_reference.py; "]
    lines[-1] += "do not edit."
    for title, names in groups().items():
        lines += ["", f"## {title}", ""]
        for name in names:
            lines += entry(memrt, name)
    for module in MODULES:
        lines += [f"## {module.__name__}", ""]
        for name in module.__all__:
            lines += entry(module, name)
    lines += ["## Command line", "", *command_lines()]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).rstrip() + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument(
        "--check", action="store_true", help="check that the page is current, write nothing"
    )
    options = parser.parse_args()
    text = page()
    if options.check:
        if PAGE.exists() and PAGE.read_text(encoding="utf-8") == text:
            return 0
        name = PAGE.relative_to(ROOT)
        print(f"{name} does not match the package: run docs/python_reference.py", file=sys.stderr)
        return 1
    PAGE.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
