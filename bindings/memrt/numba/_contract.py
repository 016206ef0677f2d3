"""Check the sources of the installed Numba for all that memrt relies on, before the import."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import re
import warnings
from pathlib import Path

# Fields of Numba's MemInfo, slots of Numba's API table, and fields of the array struct, in order.
_MEMINFO_WORDS = ("refct", "dtor", "dtor_info", "data", "size", "external_allocator")
_TABLE_SLOTS = ("allocate", "allocate_external", "manage_memory", "acquire", "release", "get_data")
_ARRAY_WORDS = ("meminfo", "parent", "nitems", "itemsize", "data", "shape_and_strides")

# Fields of the structs of typed containers. Numba 0.60 has no typed set.
_CONTAINERS = {
    ("dictobject.h", "NB_Dict"): ("used", "keys"),
    ("setobject.h", "NB_Set"): ("used", "keys"),
    ("listobject.h", "NB_List"): (
        "size", "item_size", "allocated", "is_mutable", "methods", "items",
    ),
}  # fmt: skip

_HELPERS = frozenset(
    """adapt_ndarray_from_python adapt_ndarray_to_python_acqref adapt_buffer_from_python
    meminfo_new_from_pyobject meminfo_as_pyobject meminfo_from_pyobject
    MemInfo_alloc MemInfo_alloc_safe MemInfo_alloc_aligned MemInfo_alloc_safe_aligned
    MemInfo_alloc_safe_aligned_external _nrt_get_sample_external_allocator
    MemInfo_alloc_dtor MemInfo_alloc_dtor_safe MemInfo_call_dtor
    MemInfo_new_varsize MemInfo_new_varsize_dtor MemInfo_varsize_alloc MemInfo_varsize_realloc
    MemInfo_varsize_free MemInfo_data MemInfo_release Allocate Free get_api
    memsys_use_cpython_allocator memsys_shutdown memsys_stats_enabled memsys_enable_stats
    memsys_disable_stats memsys_get_stats_alloc memsys_get_stats_free memsys_get_stats_mi_alloc
    memsys_get_stats_mi_free meminfo_new meminfo_alloc meminfo_alloc_safe""".split()
)


def tested_versions() -> list[str]:
    """Return the versions of Numba that memrt is tested with, oldest first.

    Returns
    -------
    list of str
        Versions, such as '0.61.0'.

    Examples
    --------
    >>> import memrt.numba
    >>> len(memrt.numba.tested_versions()) > 0
    True
    """
    rows = json.loads(Path(__file__).with_name("matrix.json").read_text(encoding="utf-8"))
    return sorted({row["numba"] for row in rows}, key=_ordered)


def verify() -> None:
    """Warn about a Numba version outside the tested range, and refuse an incompatible Numba.

    Raises
    ------
    ImportError
        Numba is missing, or differs in an interface that memrt relies on.
    """
    version, folder = _installation()
    tested = tested_versions()
    if not _ordered(tested[0]) <= _ordered(version) <= _ordered(tested[-1]):
        warnings.warn(
            f"memrt is tested with Numba {tested[0]} to {tested[-1]}, got {version}",
            RuntimeWarning,
            stacklevel=2,
        )
    problems = differences(folder)
    if problems:
        raise ImportError(
            f"Numba {version} cannot run on memrt {importlib.metadata.version('memrt')}: "
            + "; ".join(problems)
            + f". Use Numba {tested[0]} to {tested[-1]}, or run without memrt.numba.install()"
        )


def differences(folder: Path) -> list[str]:
    """Return the differences between the Numba in `folder` and the contract, one phrase each."""
    runtime = folder / "core" / "runtime"
    found = [
        _differs(runtime / "nrt.cpp", r"struct MemInfo \{(.*?)\};", _MEMINFO_WORDS),
        _differs(runtime / "nrt_external.h", r"typedef struct \{(.*?)\} NRT_api", _TABLE_SLOTS),
        _differs(folder / "_arraystruct.h", r"typedef struct \{(.*?)\} arystruct", _ARRAY_WORDS),
        _unknown_helpers(runtime / "_nrt_pythonmod.c"),
    ]
    return [problem for problem in found if problem]


def container_differences() -> list[str]:
    """Return the differences between Numba's typed containers and the contract."""
    folder = _installation()[1] / "cext"
    found = [
        _differs(folder / name, rf"typedef struct \{{([^{{}}]*)\}} {struct};", fields)
        for (name, struct), fields in _CONTAINERS.items()
        if (folder / name).exists()
    ]
    return [problem for problem in found if problem]


def _installation() -> tuple[str, Path]:
    spec = importlib.util.find_spec("numba")
    if spec is None or not spec.submodule_search_locations:
        raise ImportError("Numba is not installed in this environment: pip install numba")
    return importlib.metadata.version("numba"), Path(next(iter(spec.submodule_search_locations)))


def _ordered(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", version)[:3])


def _text(file: Path) -> str:
    """Return the source without comments, or "" if Numba does not ship the file."""
    try:
        text = file.read_text(encoding="utf-8")
    except OSError:
        return ""
    return re.sub(r"/\*.*?\*/|//[^\n]*", " ", text, flags=re.DOTALL)


def _differs(file: Path, pattern: str, expected: tuple[str, ...]) -> str:
    struct = re.search(pattern, _text(file), re.DOTALL)
    if struct is None:
        return f"{file.name} does not declare the expected struct"
    fields = [field for field in struct.group(1).split(";") if field.strip()]
    names = [re.search(r"\(\*\s*(\w+)\)|(\w+)\s*(?:\[\w*\]\s*)?$", field) for field in fields]
    found = tuple(name and (name.group(1) or name.group(2)) for name in names)
    return (
        "" if found == expected else f"{file.name} must declare the fields {expected}, got {found}"
    )


def _unknown_helpers(file: Path) -> str:
    text = _text(file)
    wanted = set(re.findall(r"^\s*declmethod(?:_noargs|_internal)?\((\w+)\)", text, re.MULTILINE))
    if not wanted:
        return f"{file.name} declares no helpers"
    unknown = sorted(wanted - _HELPERS)
    return f"{file.name} needs helpers missing in memrt: {', '.join(unknown)}" if unknown else ""
