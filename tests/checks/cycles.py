"""Check that no two modules use each other, directly or over other modules.

Usage: python tests/checks/cycles.py OBJECTS [ROOT]

A C module is a `.c` file with the `.h` file of the same name. C modules use each other by includes
and, in `runtime` and `api`, by the undefined symbols of the object files in the folder OBJECTS.
Python modules of the package use each other by imports, local imports included. Imports for type
checkers do not run and do not count. No linter on PyPI reads object files and C includes together.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

INCLUDE = re.compile(r'^#include "([^"]+)"', re.MULTILINE)
PACKAGE = "bindings/memrt"
Graph = dict[str, set[str]]


def c_modules(root: Path) -> Iterator[tuple[str, Path, Path]]:
    """Yield name, file and include root of each C file."""
    for top, includes in (("runtime", "."), ("api", "."), ("bindings/src", "bindings/src")):
        for path in sorted((root / top).rglob("*.[ch]")):
            if "include" not in path.parts:
                yield path.relative_to(root).with_suffix("").as_posix(), path, root / includes


def by_includes(root: Path) -> Graph:
    uses: Graph = defaultdict(set)
    for name, path, includes in c_modules(root):
        for header in INCLUDE.findall(path.read_text(encoding="utf-8")):
            if (includes / header).is_file():
                used = (includes / header).relative_to(root).with_suffix("").as_posix()
                uses[name] |= {used} - {name}
    return uses


def symbols(path: Path) -> tuple[set[str], set[str]]:
    """Return the defined and the undefined symbols of an object file."""
    text = subprocess.run(["nm", "-gP", path], capture_output=True, text=True, check=True).stdout
    rows = [line.split() for line in text.splitlines()]
    rows = [row for row in rows if not row[0].startswith("_.stapsdt")]
    return {r[0] for r in rows if r[1] != "U"}, {r[0] for r in rows if r[1] == "U"}


def by_symbols(root: Path, objects: Path) -> Graph:
    names = {name for name, path, _ in c_modules(root) if path.suffix == ".c"}
    read = {name: symbols(objects / f"{name}.c.o") for name in names if "bindings" not in name}
    owner = {symbol: name for name, (defined, _) in read.items() for symbol in defined}
    return {
        name: {owner[symbol] for symbol in undefined if symbol in owner} - {name}
        for name, (_, undefined) in read.items()
    }


def imports(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """Yield module and name of each import that runs; the name is empty for `import module`."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        if isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from ((node.module, alias.name) for alias in node.names)
        yield from imports(node)


def by_imports(root: Path) -> Graph:
    """Return the imports between the modules of the package, without those of the package itself.

    Every import of a module first runs `memrt/__init__.py`, which imports most modules.
    """
    files = {}
    for path in sorted((root / PACKAGE).rglob("*.py")):
        name = path.relative_to(root / PACKAGE).with_suffix("").as_posix().replace("/", ".")
        files[f"memrt.{name}".removesuffix(".__init__")] = path
    uses: Graph = {}
    for name, path in files.items():
        tree = ast.parse(path.read_text(encoding="utf-8"))
        found = {f"{m}.{n}" if f"{m}.{n}" in files else m for m, n in imports(tree)}
        uses[name] = (found & files.keys()) - {name, "memrt"}
    return uses


def reachable(uses: Graph, start: str) -> set[str]:
    found: set[str] = set()
    left = list(uses.get(start, ()))
    while left:
        name = left.pop()
        if name not in found:
            found.add(name)
            left += uses.get(name, ())
    return found


def circles(uses: Graph) -> list[list[str]]:
    """Return the groups of modules that all reach each other, each group sorted."""
    reach = {name: reachable(uses, name) for name in uses}
    groups = {
        tuple(sorted(other for other in reach[name] if name in reach.get(other, ())))
        for name in uses
        if name in reach[name]
    }
    return [list(group) for group in sorted(groups)]


def main(argv: list[str]) -> int:
    if len(argv) not in (2, 3):
        print(__doc__.split("\n\n")[1], file=sys.stderr)
        return 2
    objects, root = Path(argv[1]), Path(argv[2] if len(argv) > 2 else ".").resolve()
    uses: Graph = defaultdict(set)
    for graph in (by_includes(root), by_symbols(root, objects), by_imports(root)):
        for name, used in graph.items():
            uses[name] |= used
    found = circles(uses)
    for group in found:
        print("modules use each other:", ", ".join(group))
    print(f"cycles: {len(uses)} modules, {len(found)} violations")
    return 1 if found or not uses else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
