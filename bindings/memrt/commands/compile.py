"""``python -m memrt compile``: compile jitted functions for C programs without Python."""

from __future__ import annotations

import argparse
import os

from memrt.commands.output.errors import CommandError
from memrt.commands.output.target import Target, expect_distinct
from memrt.numba._objects.errors import ObjectError

HELP = "Compile functions of Numba to an object file and a C header, for programs without Python."

EXAMPLES = """\
The object file contains the functions and all functions that they call. A C program includes the
header and links the object file with libmemrt_nrt. The program needs neither Python nor Numba.

The functions need a signature: in the decorator, as in @njit("float64(float64[:])"), or by the
option --signature.

exit status: 0; 2 if a function cannot be compiled or a file cannot be written

examples:
  python -m memrt compile kernels.py:smooth -o kernels.o
  python -m memrt compile kernels.py:smooth,histogram -o kernels.o --header include/kernels.h
  python -m memrt compile kernels.py:total --signature 'float64(float64[:])' -o total.o
  cc main.c kernels.o $(pkg-config --cflags --libs memrt-nrt)
"""


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("functions", metavar="FILE:FUNCTION[,FUNCTION...]",
                        help="script, and functions of the script")  # fmt: skip
    parser.add_argument("-o", "--output", metavar="OUT.o", required=True,
                        help="object file to write")  # fmt: skip
    parser.add_argument("--header", metavar="OUT.h",
                        help="header to write (default: OUT.h)")  # fmt: skip
    parser.add_argument("--signature", metavar="TEXT",
                        help="signature of the function in Numba's notation")  # fmt: skip
    parser.add_argument("--cpu", choices=["generic", "host"], default="generic",
                        help="processor: any of this architecture, or this machine's "
                             "(default generic)")  # fmt: skip
    parser.add_argument("--force", action="store_true", help="replace existing files")


def execute(arguments: argparse.Namespace) -> None:
    script, names = _split(arguments.functions)
    header = arguments.header or os.path.splitext(arguments.output)[0] + ".h"
    code_file = Target(arguments.output, arguments.force)
    header_file = Target(header, arguments.force)
    expect_distinct([code_file, header_file])
    stem = os.path.splitext(os.path.basename(header))[0]
    try:
        code, text = _compile(script, names, arguments.signature, stem, arguments.cpu)
    except ObjectError as error:
        raise CommandError(str(error)) from None
    for target, data in ((code_file, code), (header_file, text)):
        _write(target, data)


def _split(functions: str) -> tuple[str, list[str]]:
    """Return the script and the names of its functions."""
    script, colon, names = functions.rpartition(":")
    if not colon or not all(names.split(",")):
        raise CommandError(f"functions must be FILE:FUNCTION[,FUNCTION...], got {functions!r}")
    return script, list(dict.fromkeys(names.split(",")))


def _compile(
    script: str, names: list[str], signature: str | None, stem: str, cpu: str
) -> tuple[bytes, bytes]:
    """Return the contents of the object file and of the header."""
    from memrt.numba._objects.functions import find_function, load_script

    if signature is not None and len(names) > 1:
        raise CommandError(f"--signature must have one function, got {', '.join(names)}")
    module = load_script(script)  # before the import of Numba, so that the script may configure it
    try:
        from memrt.numba._objects.object_code import build
    except ImportError as error:
        raise CommandError(f"compile needs Numba, got {error}: pip install numba") from None
    functions = [find_function(module, name, signature) for name in names]
    output = build(functions, stem, os.path.basename(script), cpu)
    return output.code, output.header.encode()


def _write(target: Target, data: bytes) -> None:
    try:
        target.write(lambda file: file.write(data))
    except OSError as error:
        raise CommandError(f"cannot write {target.path!r}: {error.strerror}") from None
