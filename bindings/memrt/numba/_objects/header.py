"""Write the C header of an object file."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from memrt.numba._objects.c_types import CType
from memrt.numba._objects.exceptions import Raised

_HEADER = """\
#ifndef {guard}
#define {guard}

/// Functions of {source}, compiled by Numba {version}. Link with libmemrt_nrt.
///
/// Each function returns a status: 0, or the number of the exception that was raised. The result is
/// written only if the status is 0. Arguments are borrowed. An array or a string in a result holds
/// one reference: call NRT_MemInfo_release(result.meminfo), unless result.meminfo is NULL.

#include <stdbool.h>
#include <stdint.h>

#include <memrt/nrt.h>

#ifdef __cplusplus
extern "C" {{
#endif

/// Status of a function.
typedef enum {stem}_status {{
{enumerators}}} {stem}_status_t;

/// Return the class of the exception of a status: "ValueError".
static inline const char *{stem}_status_name(int32_t status)
{{
    switch (status) {{
{cases}    default:
        return "unknown";
    }}
}}

{structs}{prototypes}#ifdef __cplusplus
}}
#endif

#endif
"""


@dataclass(frozen=True)
class Prototype:
    """A compiled function: names and types of the arguments, and the result or None."""

    name: str
    arguments: dict[str, tuple[Any, CType]]
    result: tuple[Any, CType] | None

    def write(self) -> str:
        notes = [f"///   {name:<10} {kind}\n" for name, (kind, _) in self.arguments.items()]
        words = [c_type.declare_argument(name) for name, (_, c_type) in self.arguments.items()]
        if self.result is not None:
            notes.append(f"///   {'result':<10} {self.result[0]}\n")
            words.append(self.result[1].declare_result("result"))
        return f"{''.join(notes)}int32_t {self.name}({', '.join(words) or 'void'});\n\n"


def number_classes(raised: list[Raised]) -> dict[str, int]:
    """Return the status of each class of exception by the name of the class, from 1 on."""
    return {name: index for index, name in enumerate(sorted({each.name for each in raised}), 1)}


@dataclass(frozen=True)
class Contents:
    """The contents of a header. `numbers` has the status of each class of exception."""

    prototypes: list[Prototype]
    structs: list[str]
    raised: list[Raised]
    numbers: dict[str, int]


def write_header(stem: str, source: str, version: str, contents: Contents) -> str:
    """Return the text of a header.

    Parameters
    ----------
    stem : str
        Name of the header without the suffix.
    source, version : str
        Name of the script, and version of Numba.
    """
    prefix = re.sub(r"\W|^(?=\d)", "_", stem)
    return _HEADER.format(
        guard=f"{prefix.upper()}_H",
        stem=prefix,
        source=source,
        version=version,
        enumerators=_write_enumerators(prefix.upper(), contents.numbers, contents.raised),
        cases="".join(
            f'    case {number}:\n        return "{name}";\n'
            for name, number in {"OK": 0, **contents.numbers}.items()
        ),
        structs="".join(f"{each}\n" for each in contents.structs),
        prototypes="".join(each.write() for each in contents.prototypes),
    )


def _write_enumerators(prefix: str, numbers: dict[str, int], raised: list[Raised]) -> str:
    lines = [f"    {prefix}_OK = 0,\n"]
    for name, number in numbers.items():
        same = [each for each in raised if each.name == name]
        lines += [f"    /// {text}\n" for text in dict.fromkeys(each.text for each in same)]
        lines.append(f"    {prefix}_{same[0].enumerator} = {number},\n")
    return "".join(lines)
