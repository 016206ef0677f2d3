"""Run three programs on memrt with real images, and check each claim about the results.

Usage: python examples/demo/demo.py PREFIX

PREFIX is the folder where CMake installed libmemrt, for the part without Python. `./dev demo`
installs the library and runs the demo.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import memrt
import numpy as np
from skimage import data

HERE = Path(__file__).resolve().parent
OUT = HERE.parents[1] / "build" / "demo"
WARNINGS = ["-std=c11", "-O2", "-Wall", "-Wextra"]
RADIUS = 40  # pixels; wider than a blood vessel, narrower than the retina's shading


def check(claim: bool, otherwise: str) -> None:
    """Stop the demo with the message `otherwise` if `claim` is false."""
    if not claim:
        raise SystemExit(f"demo: {otherwise}")


def say(text: str) -> None:
    print(f"→ {text}", flush=True)


def run(*command: object, **environment: str) -> str:
    """Run a command and return its standard output. Stop the demo if the command fails."""
    result = subprocess.run(
        [str(part) for part in command],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **environment},
    )
    check(result.returncode == 0, f"{command[0]} failed:\n{result.stdout}{result.stderr}")
    return result.stdout


def differing(one: Path, other: Path) -> list[str]:
    """Return the names of arrays that are not bit for bit the same in two .npz files."""
    with np.load(one) as left, np.load(other) as right:
        names = sorted(set(left.files) | set(right.files))
        return [
            name
            for name in names
            if name not in left
            or name not in right
            or left[name].dtype != right[name].dtype
            or left[name].shape != right[name].shape
            or left[name].tobytes() != right[name].tobytes()
        ]


def unmanaged_stages() -> tuple[int, list[str]]:
    """Run the stages in this process. Return their number, and the names of unmanaged arrays."""
    sys.path.insert(0, str(HERE))
    import deepfield

    memrt.enable()
    try:
        stages = deepfield.reduce(data.hubble_deep_field())
    finally:
        memrt.disable()
    return len(stages), [name for name, array in stages.items() if not memrt.is_managed(array)]


def numpy_program() -> str:
    """Run an unchanged NumPy program without memrt and on memrt, and compare the results."""
    say("finding galaxies in the Hubble eXtreme Deep Field (872 x 1000 x 3), without memrt")
    program = HERE / "deepfield.py"
    plain, managed, report = OUT / "plain.npz", OUT / "managed.npz", OUT / "stats.json"
    without = run(sys.executable, program, plain)
    say("the same program, unchanged: python -m memrt run deepfield.py")
    command = [sys.executable, "-m", "memrt", "run", "--quiet", "--force", "--json", report]
    within = run(*command, program, managed)
    check(within == without, f"the program printed {within!r} on memrt, {without!r} without memrt")
    different = differing(plain, managed)
    check(not different, f"results differ on memrt: {', '.join(different)}")
    say(within.strip())
    count, foreign = unmanaged_stages()
    check(not foreign, f"arrays are not on memrt: {', '.join(foreign)}")
    stats = json.loads(report.read_text(encoding="utf-8"))["stats"]
    made = f"{stats['alloc']:,} buffers, {stats['total'] / 1e6:,.0f} MB in total,"
    return (
        f"NumPy: an unchanged program allocated {made} on memrt; its {count} results equal the"
        " results without memrt bit for bit."
    )


def grey_image() -> np.ndarray:
    """Return the green channel of the retina, which shows blood vessels best."""
    return np.ascontiguousarray(data.retina()[..., 1])


def box_mean(image: np.ndarray) -> np.ndarray:
    """Compute the result of box.c in NumPy."""
    height, width = image.shape
    integral = np.zeros((height + 1, width + 1), np.uint64)
    integral[1:, 1:] = image.astype(np.uint64).cumsum(0).cumsum(1)
    rows, columns = np.arange(height), np.arange(width)
    top, bottom = np.maximum(rows - RADIUS, 0), np.minimum(rows + RADIUS + 1, height)
    left, right = np.maximum(columns - RADIUS, 0), np.minimum(columns + RADIUS + 1, width)
    sums = integral[bottom][:, right] - integral[bottom][:, left]
    sums -= integral[top][:, right] - integral[top][:, left]
    counts = np.outer(bottom - top, right - left).astype(np.uint64)
    return (sums // counts).astype(np.uint8)


def build_module() -> object:
    """Compile the extension against the headers of the installed package and import it."""
    target = OUT / f"box{sysconfig.get_config_var('EXT_SUFFIX')}"
    folders = [memrt.get_include(), np.get_include(), sysconfig.get_path("include")]
    includes = [f"-I{folder}" for folder in folders]
    sources = [HERE / "boxmodule.c", HERE / "box.c"]
    run("cc", *WARNINGS, "-shared", "-fPIC", *includes, "-o", target, *sources)
    spec = importlib.util.spec_from_file_location("box", target)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def c_library(image: np.ndarray, expected: np.ndarray) -> str:
    """Run a C library that allocates its result through the table and returns a NumPy array."""
    say("building a C library against the installed headers; shading of a retina (1411 x 1411)")
    box = build_module()
    before = memrt.stats()
    result = box.mean(image, RADIUS)
    made = memrt.stats() - before
    meminfo = memrt.meminfo(result)
    check(np.array_equal(result, expected), "the result of the C library differs from NumPy")
    check(meminfo.address == result.ctypes.data, "the array is a copy of the C library's buffer")
    check(not result.flags.owndata, "the array must not own the memory of memrt")
    check((made.mi_alloc, made.mi_free) == (2, 1), "the count of the C library's buffers is wrong")
    address, name = meminfo.address, meminfo.name
    del result, meminfo
    check((memrt.stats() - before).live == 0, "the end of the last array did not free the buffer")
    return (
        f"C library: NumPy used the buffer {name!r} at {address:#x} where C had allocated it."
        " After the last array, memrt freed the buffer."
    )


def write_pgm(path: Path, image: np.ndarray) -> None:
    height, width = image.shape
    path.write_bytes(b"P5\n%d %d\n255\n" % (width, height) + image.tobytes())


def build_program(prefix: Path) -> Path:
    """Compile the C program by pkg-config."""
    target = OUT / "boxmain"
    search = {"PKG_CONFIG_PATH": str(prefix / "lib" / "pkgconfig")}
    flags = run("pkg-config", "--cflags", "--libs", "memrt", **search).split()
    sources = [HERE / "boxmain.c", HERE / "box.c"]
    run("cc", *WARNINGS, "-o", target, *sources, *flags, f"-Wl,-rpath,{prefix / 'lib'}")
    return target


def c_program(prefix: Path, image: np.ndarray, expected: np.ndarray) -> str:
    """Run the same computation without Python, on a picture in a file."""
    say("building a C program by pkg-config; the same retina from a PGM file")
    source, target = OUT / "retina.pgm", OUT / "shading.pgm"
    write_pgm(source, image)
    words = run(build_program(prefix), source, target, RADIUS).strip()
    write_pgm(OUT / "expected.pgm", expected)
    same = target.read_bytes() == (OUT / "expected.pgm").read_bytes()
    check(same, "the picture of the C program differs from NumPy")
    check(words.endswith(" 0 live"), f"the C program leaks memory: {words}")
    return f"C program: the same picture without Python; {words}."


def main() -> None:
    OUT.mkdir(parents=True, exist_ok=True)
    image = grey_image()
    expected = box_mean(image)
    proven = [
        numpy_program(),
        c_library(image, expected),
        c_program(Path(sys.argv[1]).resolve(), image, expected),
    ]
    print(f"\n{memrt.stats()}\n")
    print("\n".join(proven))


if __name__ == "__main__":
    main()
