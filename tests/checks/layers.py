"""Check that every ``#include`` of the project names a header of the same or a lower layer.

Usage: python tests/checks/layers.py [ROOT]

No library checks layers: include-what-you-use and cpplint judge each file alone.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

INCLUDE = re.compile(r'^\s*#\s*include\s*(<([^>]+)>|"([^"]+)")')

C_STANDARD = {
    f"{name}.h"
    for name in (
        "assert complex ctype errno fenv float inttypes iso646 limits locale math setjmp signal "
        "stdalign stdarg stdbool stddef stdint stdio stdlib stdnoreturn string tgmath time uchar "
        "wchar wctype"
    ).split()
}

# Headers that only the named files may include, so that atomics, memory functions of the operating
# system, probes and Python are each used in few places.
DOORS = {
    "atomic_ops.h": ("runtime/base/atomics.h",),
    "stdatomic.h": ("runtime/base/atomics.h", "bindings/src/"),
    "sys/mman.h": ("runtime/os/", "bindings/src/core/volatile_content.c"),
    "sys/sdt.h": ("runtime/base/usdt.h",),
    "valgrind/memcheck.h": ("runtime/base/memory_tool.c",),
    "Python.h": ("bindings/",),
    "numpy/": ("bindings/",),
}


@dataclass(frozen=True)
class Layer:
    """A folder, and the folders visible to its files. A file belongs to the longest prefix."""

    prefix: str
    sees: tuple[str, ...]


def _stack(*floors: tuple[str, ...], below: tuple[str, ...] = ()) -> list[Layer]:
    """Return layers from lowest to highest. Each layer sees all layers of lower floors."""
    layers: list[Layer] = []
    for floor in floors:
        layers += [Layer(prefix, below) for prefix in floor]
        below += floor
    return layers


LAYERS = [
    *_stack(
        ("api/include/",),
        ("runtime/base/",),
        ("runtime/os/",),
        ("runtime/config/",),
        ("runtime/thread/",),
        ("runtime/stats/",),
        ("runtime/observe/",),
        ("runtime/trace/",),
        ("runtime/alloc/",),
        ("runtime/policy/",),
        ("runtime/pressure/",),
        ("runtime/event/",),
        ("runtime/meminfo/",),
        ("runtime/cuda/",),
        ("runtime/interop/", "runtime/symbols/"),
        ("runtime/report/",),
        ("runtime/",),
        ("api/",),
    ),
    Layer("tests/conformance/", ("api/include/",)),
    Layer("bindings/include/", ("api/include/",)),
    Layer("bindings/memrt/", ()),
    Layer("bindings/nrt/", ("api/include/", "bindings/src/numba/")),
    Layer("bindings/replay/", ("api/include/", "bindings/memrt/")),
    *_stack(
        ("bindings/src/support/",),
        ("bindings/src/core/",),
        ("bindings/src/allocators/", "bindings/src/buffer/", "bindings/src/interop/"),
        ("bindings/src/types/",),
        (
            *("bindings/src/callbacks/", "bindings/src/observe/", "bindings/src/numba/"),
            "bindings/src/tasks/",
        ),
        ("bindings/src/access/",),
        ("bindings/src/",),
        below=("api/include/", "bindings/include/"),
    ),
]


def layer_of(path: str) -> Layer | None:
    """Return the layer of a path relative to the root, or None outside of all layers."""
    fitting = [layer for layer in LAYERS if path.startswith(layer.prefix)]
    return max(fitting, key=lambda layer: len(layer.prefix), default=None)


def sources(root: Path) -> Iterator[str]:
    """Yield every C and C++ file of the layers, relative to the root."""
    for folder in ("api", "runtime", "tests/conformance", "bindings"):
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in {".c", ".h", ".cpp", ".hpp"}:
                yield path.relative_to(root).as_posix()


def includes(path: Path) -> Iterator[tuple[int, str]]:
    """Yield line number and name of every include of a file."""
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if match := INCLUDE.match(line):
            yield number, match[2] or match[3]


def resolve(root: Path, source: str, name: str) -> str | None:
    """Return the project file that an include names, or None for a foreign or missing header."""
    parent = PurePosixPath(source).parent.as_posix()
    roots = [parent, ".", "api/include", "bindings/src", "bindings/include", "tests"]
    for folder in roots:
        path = (root / folder / name).resolve()
        if path.is_file() and path.is_relative_to(root.resolve()):
            return path.relative_to(root.resolve()).as_posix()
    return None


def is_standard(source: str, name: str) -> bool:
    """Return whether a name is a header of C, or for a header of C++ a header of C++.

    Only standard headers of C++ have no suffix.
    """
    return name in C_STANDARD or (
        source.endswith(".hpp") and re.fullmatch(r"\w+", name) is not None
    )


def judge_foreign(source: str, name: str) -> str | None:
    """Return the violation if `source` includes a foreign or missing header, or None."""
    if name.startswith(("runtime/", "api/", "conformance/", "bindings/", "memrt/")):
        return "does not exist"
    if source.startswith("api/include/") and not is_standard(source, name):
        return "public headers include standard headers only"
    for header, doors in DOORS.items():
        if name.startswith(header) and not source.startswith(doors):
            return f"belongs behind {doors[0]}"
    return None


def judge_own(source: str, target: str) -> str | None:
    """Return the violation if `source` includes a file of the project, or None."""
    here, there = layer_of(source), layer_of(target)
    if here is None or there is None:
        return "is outside the layers"
    if target.endswith(".c"):
        return "is a source file, not a header"
    if here.prefix == there.prefix or there.prefix in here.sees:
        return None
    return f"is not below {here.prefix}: include from lower layers only"


def violations(root: Path) -> list[str]:
    """Return a sentence for each include that breaks the order of the layers."""
    found = []
    for source in sources(root):
        for number, name in includes(root / source):
            target = resolve(root, source, name)
            wrong = judge_own(source, target) if target else judge_foreign(source, name)
            if wrong:
                found.append(f"{source}:{number}: {name} {wrong}")
    return found


def main(argv: list[str]) -> int:
    root = Path(argv[1] if len(argv) > 1 else ".")
    count = len(list(sources(root)))
    if count == 0:
        print(f"no C file under {root.resolve()}: give the repository's root", file=sys.stderr)
        return 2
    found = violations(root)
    print("\n".join([*found, f"layers: {count} files, {len(found)} violations"]))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
