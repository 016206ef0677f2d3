"""Write the declarations of memrt/memrt.h for cffi and for Cython from the public headers.

Usage: python tests/checks/declarations.py [--write]

Without --write, the check fails if a file differs from the headers.

No library writes both: autopxd2 leaves out noexcept, nogil and the values of macros.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from pycparser import c_ast, c_generator, c_parser

ROOT = Path(__file__).resolve().parents[2]
HEADER = "api/include/memrt/memrt.h"
CFFI = "api/include/memrt/memrt.cdef"
CYTHON = "bindings/cython/memrt/__init__.pxd"
HAND_WRITTEN = Path(__file__).with_name("declarations.pxd.in")
WIDTH = 100

# Types of standard headers, which cffi and Cython know.
STANDARD = [f"{sign}int{bits}_t" for bits in (8, 16, 32, 64) for sign in ("", "u")]
STANDARD += ["size_t", "intptr_t", "uintptr_t"]
LINKED = ("memrt_get_api", "memrt_version")  # extension modules link to no library


def preprocess(root: Path, *options: str) -> str:
    """Return the header after the preprocessor, without the contents of standard headers.

    Attributes and inline functions need GNU C, so that a compiler without GNU C sees neither.
    """
    with tempfile.TemporaryDirectory() as folder:
        for name in ("stddef.h", "stdint.h"):
            (Path(folder) / name).touch()
        command = ["cc", "-E", "-P", "-nostdinc", "-U__GNUC__", f"-I{folder}", *options]
        command += [f"-I{root / 'api/include'}", str(root / HEADER)]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def declarations(root: Path) -> list[c_ast.Node]:
    """Return the types and functions of the header."""
    known = "".join(f"typedef int {name};\n" for name in STANDARD)
    tree = c_parser.CParser().parse(known + preprocess(root))
    return [
        node
        for node in tree.ext
        if not isinstance(node, c_ast.FuncDef) and getattr(node, "name", None) not in STANDARD
    ]


def constants(root: Path) -> dict[str, int]:
    """Return the macros with integer values, in alphabetical order."""
    defined = re.findall(r"^#define (MEMRT_\w+) ([^\"\n]+)$", preprocess(root, "-dM"), re.MULTILINE)
    names = sorted(name for name, _ in defined if not name.endswith("_EXPORT"))
    lines = "".join(f'    printf("%llu\\n", (unsigned long long)({name}));\n' for name in names)
    source = f"#include <stdio.h>\n#include <memrt/memrt.h>\nint main(void)\n{{\n{lines}}}\n"
    with tempfile.TemporaryDirectory() as folder:
        program = f"{folder}/constants"
        command = ["cc", "-x", "c", "-", "-o", program, f"-I{root / 'api/include'}"]
        subprocess.run(command, input=source, text=True, check=True)
        output = subprocess.run([program], capture_output=True, text=True, check=True).stdout
    return dict(zip(names, map(int, output.split()), strict=True))


def cffi_text(root: Path) -> str:
    """Return the text for cffi's `ffi.cdef`."""
    text = "/* Declarations of memrt/memrt.h for ffi.cdef() of cffi. Written from the headers by\n"
    text += "   tests/checks/declarations.py: do not edit. */\n\n"
    text += "".join(f"#define {name} {value}\n" for name, value in constants(root).items())
    write = c_generator.CGenerator().visit
    return (
        text + "\n" + "".join(f"{write(node)};\n\n" for node in declarations(root)).rstrip() + "\n"
    )


class CythonWriter:
    """Writes declarations as Cython. Types keep their names, and function pointers get noexcept."""

    def type_of(self, node: c_ast.Node, name: str) -> str:
        """Return a declaration of `name` with the type of a node."""
        if isinstance(node, c_ast.PtrDecl):
            inner = f"*{'const ' if 'const' in node.quals else ''}{name}"
            return self.type_of(node.type, f"({inner})" if is_function(node.type) else inner)
        if isinstance(node, c_ast.FuncDecl):
            parameters = node.args.params if node.args else []
            each = [self.parameter(parameter) for parameter in parameters]
            listed = ", ".join(text for text in each if text != "void ")
            return f"{self.type_of(node.type, name)}({listed})"
        if isinstance(node, c_ast.ArrayDecl):
            return self.type_of(node.type, f"{name}[{node.dim.value.rstrip('u')}]")
        base = node.type
        spelled = " ".join(base.names) if isinstance(base, c_ast.IdentifierType) else base.name
        return f"{'const ' if 'const' in node.quals else ''}{spelled} {name}"

    def parameter(self, node: c_ast.Node) -> str:
        return self.type_of(node.type, node.name or "").replace(" *", " *")

    def member(self, node: c_ast.Decl) -> str:
        text = self.type_of(node.type, node.name)
        target = node.type.type if isinstance(node.type, c_ast.PtrDecl) else node.type
        return f"{text} noexcept nogil" if is_function(target) else text

    def struct(self, keyword: str, name: str, struct: c_ast.Struct) -> Iterator[str]:
        yield f"    {keyword} struct {name}:"
        for member in struct.decls or []:
            yield f"        {self.member(member)}"
        if not struct.decls:
            yield "        pass"

    def enum(self, name: str, enum: c_ast.Enum) -> Iterator[str]:
        yield f"    ctypedef enum {name}:"
        for value in enum.values.enumerators:
            yield f"        {value.name}"

    def lines(self, node: c_ast.Node) -> Iterator[str]:
        """Yield the lines of one declaration, inside of an extern block."""
        inner = node.type.type if isinstance(node.type, c_ast.TypeDecl) else node.type
        if isinstance(node, c_ast.Typedef) and isinstance(inner, c_ast.Struct):
            yield from self.struct("ctypedef", node.name, inner)
        elif isinstance(node, c_ast.Typedef) and isinstance(inner, c_ast.Enum):
            yield from self.enum(node.name, inner)
        elif isinstance(node, c_ast.Typedef):
            yield f"    ctypedef {self.member(node)}"
        elif isinstance(inner, c_ast.Struct):
            yield from self.struct("cdef", inner.name, inner)


def is_function(node: c_ast.Node) -> bool:
    return isinstance(node, c_ast.FuncDecl)


def wrapped(line: str) -> str:
    """Break a long line after the commas of its parameters."""
    indent = " " * (len(line) - len(line.lstrip()) + 4)
    done, rest = "", line
    while len(rest) > WIDTH and (cut := rest.rfind(", ", 0, WIDTH)) > 0:
        done, rest = f"{done}{rest[: cut + 1]}\n", indent + rest[cut + 2 :]
    return f"{done}{rest}\n"


def cython_text(root: Path) -> str:
    """Return memrt/__init__.pxd: the text written by hand, and the types and constants."""
    writer = CythonWriter()
    lines = [
        line
        for node in declarations(root)
        if node.name not in LINKED
        for line in (*writer.lines(node), "")
    ]
    lines += [f"    const uint64_t {name}" for name in constants(root)]
    types = "".join(wrapped(line) if line else "\n" for line in lines)
    return HAND_WRITTEN.read_text(encoding="utf-8").replace("    TYPES\n", types)


WRITERS = {CFFI: cffi_text, CYTHON: cython_text}


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="write the files")
    write = parser.parse_args(arguments).write
    stale = []
    for name, text_of in WRITERS.items():
        text, path = text_of(ROOT), ROOT / name
        if write:
            path.write_text(text, encoding="utf-8")
        elif not path.exists() or path.read_text(encoding="utf-8") != text:
            stale.append(f"{name} differs from the headers: run {parser.prog} --write")
    print("\n".join([*stale, f"declarations: {len(WRITERS)} files, {len(stale)} violations"]))
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
