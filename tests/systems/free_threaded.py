"""Run Python tests on a free-threaded CPython with the GIL off.

Usage: python tests/systems/free_threaded.py [--parallel] [pytest arguments]

--parallel runs each test on four threads at once, by pytest-run-parallel. Tests with the marker
thread_unsafe run on one thread.

The interpreter is CPython 3.13, built once from Debian's source package with --disable-gil. apt
downloads the source with settings of its own, so the sources of the machine stay unchanged. The
interpreter, an environment and logs are stored below build/free-threaded.

No library builds the interpreter: pyenv and uv download builds or sources of other sites.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tests" / "suites"))
import steps  # noqa: E402  (a script has only its own folder in the search path)
from steps import StepError  # noqa: E402

WORK = ROOT / "build" / "free-threaded"
PYTHON = WORK / "python" / "bin" / "python3.13t"
INSIDE = WORK / "venv" / "bin" / "python"
SUITE, PACKAGE, MIRROR = "trixie", "python3.13", "http://deb.debian.org/debian/"
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
SETTINGS = ("--disable-gil", f"--prefix={WORK / 'python'}")
TOOLS = ("pytest", "pytest-run-parallel", "pytest-timeout", "pytest-xdist", "hypothesis",
         "jsonschema", "perfetto", "Jinja2", "matplotlib", "opentelemetry-sdk",
         "prometheus-client", "protobuf", "rich", "shtab", "scikit-build-core>=0.10")  # fmt: skip
# Most tests of other folders count blocks, policies or frames of the whole process.
PARALLEL = ["tests/python/arrays", "tests/python/interop"]


def run(name: str, *command: str | Path, where: Path = ROOT) -> None:
    """Run a step with its log below WORK, as steps.run() does."""
    steps.run(WORK / f"{name}.log", *command, where=where)


def mirror() -> str:
    """Return the mirror of Debian that the machine uses, or the public address of all mirrors."""
    query = ["apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages"]
    answer = subprocess.run(query, capture_output=True, text=True, check=False)
    known = [uri for uri in answer.stdout.split() if uri.endswith("/debian/")]
    return known[0] if known else MIRROR


def download_source() -> Path:
    """Download the source package by apt, which checks the signatures, and return the tarball."""
    apt = WORK / "apt"
    shutil.rmtree(apt, ignore_errors=True)
    for folder in ("state/lists/partial", "cache/archives/partial", "source"):
        (apt / folder).mkdir(parents=True)
    sources = apt / "sources.list"
    sources.write_text(f"deb-src [signed-by={KEYRING}] {mirror()} {SUITE} main\n")
    settings = {
        "Dir::Etc::SourceList": sources,
        "Dir::Etc::SourceParts": "/dev/null",
        "Dir::State": apt / "state",
        "Dir::State::status": "/var/lib/dpkg/status",
        "Dir::Cache": apt / "cache",
        "APT::Sandbox::User": "",
    }
    command = ["apt-get", *(f"-o{name}={value}" for name, value in settings.items())]
    run("apt-update", *command, "update")
    run("apt-source", *command, "--download-only", "source", PACKAGE, where=apt / "source")
    return next((apt / "source").glob(f"{PACKAGE}_*.orig.tar.xz"))


def build_python() -> None:
    """Build and install the interpreter, unless an interpreter with these settings is there."""
    stamp, wanted = WORK / "python.stamp", " ".join((SUITE, PACKAGE, *SETTINGS))
    if PYTHON.exists() and stamp.exists() and stamp.read_text() == wanted:
        return
    shutil.rmtree(WORK, ignore_errors=True)
    WORK.mkdir(parents=True)
    print(f"→ downloading the source of {PACKAGE} from Debian {SUITE}", flush=True)
    with tarfile.open(download_source()) as archive:
        archive.extractall(WORK, filter="data")
    source = next(WORK.glob("Python-3.13*"))
    print("→ building CPython without the GIL, which takes some minutes", flush=True)
    run("configure", source / "configure", *SETTINGS, where=source)
    run("make", "make", f"-j{os.cpu_count()}", where=source)
    run("install", "make", "altinstall", where=source)
    shutil.rmtree(source)
    stamp.write_text(wanted)


def make_environment() -> None:
    """Make the environment with NumPy and the tools of the tests, unless it is there."""
    stamp, wanted = WORK / "venv.stamp", hashlib.sha256(Path(__file__).read_bytes()).hexdigest()
    if stamp.exists() and stamp.read_text() == wanted:
        return
    print("→ making the environment", flush=True)
    run("venv", PYTHON, "-m", "venv", "--clear", WORK / "venv")
    run("tools", INSIDE, "-m", "pip", "install", "--only-binary=:all:", "numpy", *TOOLS)
    stamp.write_text(wanted)


def install_memrt() -> None:
    """Build memrt for the interpreter and install the wheel."""
    print("→ building and installing memrt", flush=True)
    wheels = WORK / "wheel"
    shutil.rmtree(wheels, ignore_errors=True)
    # Without isolation, because pip would build the newest NumPy where NumPy has no wheel.
    pip = (INSIDE, "-m", "pip")
    run("wheel", *pip, "wheel", "--no-deps", "--no-build-isolation", "-w", wheels, ROOT)
    wheel = next(wheels.glob("memrt-*.whl"))
    run("memrt", *pip, "install", "--force-reinstall", "--no-deps", wheel)


def run_tests(arguments: list[str]) -> int:
    """Run pytest with the GIL off, and return the exit status."""
    if arguments[:1] == ["--parallel"]:
        options, chosen = ["--parallel-threads=4"], arguments[1:] or PARALLEL
    else:
        workers = ["-n", str(os.cpu_count()), "--dist", "worksteal"]
        options, chosen = [], arguments or [*workers, "tests/python"]
    command = [str(INSIDE), "-m", "pytest", "-q", *options, *chosen]
    environment = os.environ | {"PYTHON_GIL": "0"}
    return subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode


def main() -> int:
    try:
        build_python()
        make_environment()
        install_memrt()
    except StepError as error:
        print(f"free-threaded: {error}", file=sys.stderr)
        return 1
    return run_tests(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
