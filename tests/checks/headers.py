"""Check that every public header compiles alone, without a warning: headers of C as C99, C11 and
C++11, and headers of C++ as C++17 and C++20.

Usage: python tests/checks/headers.py [ROOT]
"""

from __future__ import annotations

import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

WARNINGS = ["-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Wundef", "-Wpedantic", "-Werror"]
# Includes required before the bindings' headers, as the first lines of the headers state.
PREAMBLE = "#include <Python.h>\n#include <numpy/arrayobject.h>\n"
# Languages of a header by its suffix, with options of the compiler.
LANGUAGES = {
    ".h": {
        "c99": ["-x", "c", "-std=c99"],
        "c11": ["-x", "c", "-std=c11"],
        "c++11": ["-x", "c++", "-std=c++11"],
    },
    ".hpp": {
        "c++17": ["-x", "c++", "-std=c++17"],
        "c++20": ["-x", "c++", "-std=c++20"],
    },
}


def public_headers(root: Path) -> Iterator[Path]:
    """Yield the headers that are installed."""
    for folder in ("api/include", "bindings/include"):
        found = (root / folder).rglob("*.h*")
        yield from sorted(path for path in found if path.suffix in LANGUAGES)


def include_flags(root: Path, header: Path) -> list[str]:
    """Return the include paths. Only the bindings' headers may include Python and NumPy."""
    flags = [f"-I{root / 'api/include'}"]
    if header.is_relative_to(root / "bindings"):
        import numpy

        flags += [f"-I{root / 'bindings/include'}"]
        flags += ["-isystem", sysconfig.get_path("include"), "-isystem", numpy.get_include()]
    return flags


def compile_alone(root: Path, header: Path, language: str) -> str:
    """Compile a file with two includes of the header alone, and return the error output.

    The bindings' headers are included after PREAMBLE. Returns "" if the file compiles.
    """
    command = ["cc", "-fsyntax-only", *LANGUAGES[header.suffix][language], *WARNINGS]
    preamble = PREAMBLE if header.is_relative_to(root / "bindings") else ""
    text = preamble + f'#include "{header}"\n' * 2 + "extern int not_empty;\n"
    result = subprocess.run(
        [*command, *include_flags(root, header), "-"],
        input=text,
        capture_output=True,
        text=True,
        check=False,
    )
    return "" if result.returncode == 0 else result.stderr or "the compiler failed"


def violations(root: Path) -> list[str]:
    """Return the compiler output for each header that does not compile alone."""
    found = []
    for header in public_headers(root):
        for language in LANGUAGES[header.suffix]:
            if words := compile_alone(root, header, language):
                found.append(f"{header.relative_to(root)} as {language}:\n{words}")
    return found


def main(argv: list[str]) -> int:
    root = Path(argv[1] if len(argv) > 1 else ".").resolve()
    count = len(list(public_headers(root)))
    if count == 0:
        print(f"no public header under {root}: give the repository's root", file=sys.stderr)
        return 2
    found = violations(root)
    print("\n".join([*found, f"headers: {count} files, {len(found)} violations"]))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
