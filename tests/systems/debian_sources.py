"""Download sources of programs from Debian's pool.

No library replaces the module: `apt-get source` needs other settings of the machine.
"""

from __future__ import annotations

import hashlib
import io
import shutil
import sys
import tarfile
import urllib.request
from pathlib import Path

SOURCES = {  # path in the pool, SHA-256
    "python3.13": (
        "p/python3.13/python3.13_3.13.5.orig.tar.xz",
        "93e583f243454e6e9e4588ca2c2662206ad961659863277afcdb96801647d640",
    ),
    "python3.14": (
        "p/python3.14/python3.14_3.14.7.orig.tar.xz",
        "3b48dac8fb59f62eaa67ac83c1eb12bda1b7a08406dd286e252c11a66be27f81",
    ),
    "zlib": (
        "z/zlib/zlib_1.2.13.dfsg.orig.tar.bz2",
        "71feb7947e3c00ef125f83b79a4e529bde31171e5babe48b391f06758d1ab0a1",
    ),
    "libffi": (
        "libf/libffi/libffi_3.4.4.orig.tar.gz",
        "d66c56ad259a82cf2a9dfc408b32bf5da52371500b84745f7fb8b645712df676",
    ),
}
POOLS = (  # the second one keeps all former versions
    "http://deb.debian.org/debian/pool/main",
    "http://snapshot.debian.org/archive/debian/20261101T000000Z/pool/main",
)


def unpack(name: str, folder: Path) -> Path:
    """Download a source and unpack the files into `folder / name`, in place of an older source.

    Returns `folder / name`. Raises OSError if no pool has the file.
    """
    archive = download(*SOURCES[name])
    partial = folder / f"{name}.partial"
    for old in (partial, folder / name):
        shutil.rmtree(old, ignore_errors=True)
    with tarfile.open(fileobj=io.BytesIO(archive)) as source:
        source.extractall(partial, filter="data")
    (top,) = partial.iterdir()
    top.rename(folder / name)
    partial.rmdir()
    return folder / name


def download(file: str, digest: str) -> bytes:
    """Return a file of the pool. Raises OSError if no pool has the file with the SHA-256."""
    for pool in POOLS:
        try:
            with urllib.request.urlopen(f"{pool}/{file}", timeout=60) as answer:
                archive = answer.read()
        except OSError as error:
            print(f"{pool}/{file}: {error}", file=sys.stderr)
            continue
        if hashlib.sha256(archive).hexdigest() == digest:
            return archive
        print(f"{pool}/{file}: has another SHA-256 than {digest}", file=sys.stderr)
    raise OSError(f"cannot download {file} from Debian")
