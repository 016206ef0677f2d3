"""Check the symbols that memrt's binaries export and the libraries that they need.

Usage: python tests/checks/exports.py FILE ...

Each file is the static library (suffix .a), the extension module (prefix _memrt),
libmemrt_nrt.so.1, or otherwise libmemrt.so.1.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

LIBRARY_EXPORTS = {"memrt_get_api", "memrt_version"}
EXTENSION_EXPORTS = {"PyInit__memrt", "PyInit__nrt_python"}
# Names that object code of Numba refers to. tests/numba compares the names with Numba's sources.
NRT_EXPORTS = {
    "_nrt_get_sample_external_allocator",
    *(
        f"NRT_{name}"
        for name in """Allocate Free get_api MemInfo_alloc MemInfo_alloc_aligned MemInfo_alloc_dtor
        MemInfo_alloc_dtor_safe MemInfo_alloc_safe MemInfo_alloc_safe_aligned
        MemInfo_alloc_safe_aligned_external MemInfo_call_dtor MemInfo_data MemInfo_new_varsize
        MemInfo_new_varsize_dtor MemInfo_release MemInfo_varsize_alloc MemInfo_varsize_free
        MemInfo_varsize_realloc""".split()
    ),
    *(
        f"numba_{name}"
        for name in """attempt_nocopy_reshape cpow cpowf frexp frexpf gamma gammaf ldexp ldexpf
        nextafter nextafterf""".split()
    ),
}
LIBRARY_NEEDS = re.compile(r"(libc|libm|libpthread)\.so\.\d+|ld-linux[-\w]*\.so\.\d+")
SONAME = "libmemrt.so.1"
NRT_SONAME = "libmemrt_nrt.so.1"
PREFIX = re.compile("memrt_")
SHARED_BY_ALL = {"_.stapsdt.base"}  # weak symbol that sys/sdt.h defines for probes


def _output(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def exported(library: Path) -> set[str]:
    """Return the names of all exported symbols, without symbol versions."""
    lines = _output("nm", "-D", "--defined-only", str(library)).splitlines()
    return {line.split()[-1].split("@")[0] for line in lines}


def dynamic(library: Path, tag: str) -> list[str]:
    """Return the values of a tag (NEEDED, SONAME) in the dynamic section of a library."""
    return re.findall(rf"\({tag}\).*\[(.+)\]", _output("readelf", "-d", "-W", str(library)))


def _difference(path: Path, expected: set[str]) -> list[str]:
    found = exported(path)
    extra = [f"{path}: exports the internal symbol {name}" for name in sorted(found - expected)]
    return extra + [f"{path}: does not export {name}" for name in sorted(expected - found)]


def library_violations(library: Path) -> list[str]:
    """Return a sentence for each violation in the dynamic section of libmemrt."""
    found = _difference(library, LIBRARY_EXPORTS)
    return found + _linkage_violations(library, SONAME, dynamic(library, "NEEDED"))


def nrt_violations(library: Path) -> list[str]:
    """Return a sentence for each violation in the dynamic section of libmemrt_nrt."""
    found = _difference(library, NRT_EXPORTS)
    others = [needed for needed in dynamic(library, "NEEDED") if needed != SONAME]
    if len(others) == len(dynamic(library, "NEEDED")):
        found.append(f"{library}: does not link {SONAME}")
    return found + _linkage_violations(library, NRT_SONAME, others)


def _linkage_violations(library: Path, soname: str, needs: list[str]) -> list[str]:
    found = [
        f"{library}: needs {needed}, not only the C library"
        for needed in needs
        if not LIBRARY_NEEDS.fullmatch(needed)
    ]
    if dynamic(library, "SONAME") != [soname]:
        found.append(f"{library}: SONAME must be {soname}, got {dynamic(library, 'SONAME')}")
    return found


def extension_violations(extension: Path) -> list[str]:
    """Return a sentence for each violation in the dynamic section of the extension."""
    found = _difference(extension, EXTENSION_EXPORTS)
    if SONAME not in dynamic(extension, "NEEDED"):
        found.append(
            f"{extension}: does not link {SONAME}, so a process would get a second runtime"
        )
    return found


def _may_be(name: str) -> bool:
    return PREFIX.match(name) is not None or name in SHARED_BY_ALL


def archive_violations(archive: Path) -> list[str]:
    """Return a sentence for each name of a static library that may clash with a program's names."""
    lines = _output("nm", "-g", "--defined-only", str(archive)).splitlines()
    names = sorted(words[2] for words in map(str.split, lines) if len(words) == 3)
    found = [f"{archive}: {name} lacks the prefix" for name in names if not _may_be(name)]
    return found if names else [f"{archive}: defines no symbol"]


def violations(path: Path) -> list[str]:
    """Return a sentence for each violation of a file of any of the four kinds."""
    if path.suffix == ".a":
        return archive_violations(path)
    if path.name.startswith("_memrt"):
        return extension_violations(path)
    return nrt_violations(path) if path.name == NRT_SONAME else library_violations(path)


def main(argv: list[str]) -> int:
    if len(argv) < 2:
        print(__doc__, file=sys.stderr)
        return 2
    found = [line for argument in argv[1:] for line in violations(Path(argument))]
    print("\n".join([*found, f"exports: {len(argv) - 1} files, {len(found)} violations"]))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
