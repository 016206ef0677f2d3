"""Find the addresses of exported functions in the memory of another process."""

from __future__ import annotations

import os
import struct
from typing import NamedTuple

_ELF = struct.Struct("<16sHHIQQQIHHHHHH")
_SEGMENT = struct.Struct("<IIQQQQQQ")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_X86_64, _SHARED, _LOAD, _DYNSYM = 62, 3, 1, 11


class Mapping(NamedTuple):
    """Mapping of /proc/PID/maps."""

    start: int
    end: int
    offset: int
    path: str


def mappings(pid: int) -> list[Mapping]:
    """Return the mappings of a process.

    Raises
    ------
    OSError
        The process has ended, or may not be read.
    """
    found = []
    with open(f"/proc/{pid}/maps", encoding="utf-8", errors="surrogateescape") as file:
        for line in file:
            span, _, offset, _, _, *path = line.rstrip("\n").split(None, 5)
            start, end = (int(number, 16) for number in span.split("-"))
            found.append(Mapping(start, end, int(offset, 16), path[0] if path else ""))
    return found


def find_symbols(pid: int, names: tuple[str, ...]) -> dict[str, int]:
    """Return the addresses of exported symbols of Python in a process.

    The program and files named libpython are searched. The result is empty if no file exports all
    of the names.

    Raises
    ------
    OSError
        The process has ended, or may not be read.
    """
    program = os.readlink(f"/proc/{pid}/exe")
    for mapping in mappings(pid):
        is_python = mapping.path == program or "/libpython" in mapping.path
        if is_python and mapping.offset == 0:
            found = _symbols_of(f"/proc/{pid}/root{mapping.path}", mapping.start, names)
            if len(found) == len(names):
                return found
    return {}


def _symbols_of(path: str, start: int, names: tuple[str, ...]) -> dict[str, int]:
    """Return the addresses of the exported symbols of a file whose first byte is at `start`."""
    try:
        with open(path, "rb") as file:
            data = file.read()
        return _addresses(data, start, {name.encode() for name in names})
    except (OSError, struct.error):  # a removed, cut or unusual file
        return {}


def _addresses(data: bytes, start: int, names: set[bytes]) -> dict[str, int]:
    head = _ELF.unpack_from(data)
    if not data.startswith(b"\x7fELF\x02\x01") or head[2] != _X86_64:
        return {}
    segments = _SEGMENT.iter_unpack(data[head[5] : head[5] + head[10] * _SEGMENT.size])
    first = next((each[3] for each in segments if each[0] == _LOAD and each[2] == 0), 0)
    bias = start - first if head[1] == _SHARED else 0
    sections = list(_SECTION.iter_unpack(data[head[6] : head[6] + head[12] * _SECTION.size]))
    found = {}
    for section in sections:
        if section[1] != _DYNSYM:
            continue
        texts = data[sections[section[6]][4] :][: sections[section[6]][5]]
        for symbol in _SYMBOL.iter_unpack(data[section[4] : section[4] + section[5]]):
            if symbol[3] and (name := _text_at(texts, symbol[0])) in names:
                found[name.decode()] = bias + symbol[4]
    return found


def _text_at(texts: bytes, start: int) -> bytes:
    return texts[start : texts.index(b"\0", start)]
