"""Test the gdb commands on a process and a core file of a release build with debug information."""

from __future__ import annotations

import itertools
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import memrt
import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "runtime" / "observe" / "gdb" / "memrt_gdb.py"
MODULES = SCRIPT.with_suffix("")  # folder
LIBRARY = next((ROOT / "build" / "dev").glob("libmemrt.so.*"))
AGE = re.compile(r"\d+\.\d s")


def gdb(*arguments: str | Path, source: Path | None = SCRIPT, **environment: str) -> str:
    """Run gdb in batch mode with these arguments, and return stderr, then stdout."""
    quiet = ["set debuginfod enabled off", "set startup-with-shell off", "set width 0"]
    loaded = [] if source is None else [f"source {source}"]
    command = ["gdb", "-nx", "-batch", *(f"-iex={text}" for text in [*quiet, *loaded])]
    result = subprocess.run(
        [*command, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, "MEMRT_CHECK": "0", **environment},
    )
    return result.stderr + result.stdout


def commands(*lines: str) -> list[str]:
    return [f"-ex={line}" for line in lines]


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("gdb")


@pytest.fixture(scope="module")
def program(folder) -> Path:
    target = folder / "program"
    include, rpath = f"-I{ROOT}/api/include", f"-Wl,-rpath,{LIBRARY.parent}"
    source = Path(__file__).with_name("program.c")
    subprocess.run(["cc", "-g", include, "-o", target, source, LIBRARY, rpath], check=True)
    return target


@pytest.fixture(scope="module")
def core(program, folder) -> tuple[Path, list[int]]:
    """Make a core file of the program. Returns path and printed statistics."""
    target = folder / "core"
    said = gdb(program, *commands("run", f"generate-core-file {target}"))
    counted = re.search(r"^counted (.*)$", said, re.MULTILINE)
    assert target.is_file(), said
    return target, list(map(int, counted[1].split()))


@pytest.fixture(params=["process", "core file"])
def ask(request, program, core):
    """Return a function that runs gdb commands at the abort, in a process or on a core file."""

    def run(*lines: str) -> str:
        if request.param == "process":
            return gdb(program, *commands("run", *lines))
        return gdb(program, core[0], *commands(*lines))

    return run


def table(said: str, head: str) -> list[list[str]]:
    """Return the table rows below the line that begins with the words of `head`, as columns."""
    lines = [re.split(r"\s{2,}", line.strip()) for line in said.splitlines()]
    words = head.split()
    first = next(i for i, line in enumerate(lines) if line[: len(words)] == words)
    return list(itertools.takewhile(lambda row: len(row) > 1, lines[first + 1 :]))


def without(row: list[str], *columns: int) -> list[str]:
    return [cell for index, cell in enumerate(row) if index not in columns]


def test_live_lists_tracked_buffers_oldest_first(ask):
    said = ask("memrt live")
    rows = table(said, "id size refs age")
    assert [without(row, 0, 3, 4) for row in rows] == [
        ["4096", "2", "inline", "images", "lookup table"],
        ["800", "1", "adopted", "default"],
        ["9000", "1", "resizable", "default"],
        ["2000000", "1", "block", "default", "load/parse"],
    ]
    assert [int(row[0]) for row in rows] == sorted(int(row[0]) for row in rows)
    assert all(AGE.fullmatch(row[3]) for row in rows)
    assert len({row[4] for row in rows}) == 1
    assert "4 live buffers, 1.9 MiB\n" in said


def test_live_options_sort_and_limit_the_rows(ask):
    said = ask("memrt live --sort size --limit 2")
    assert [row[1] for row in table(said, "id size")] == ["2000000", "9000"]
    assert "4 live buffers, 1.9 MiB, 2 not shown\n" in said


def test_stats_equal_the_statistics_of_the_program(ask, core):
    rows = table(ask("memrt stats"), "live blocks")
    assert rows[0] == [*map(str, core[1]), "all"]
    by_name = {tuple(row[5:]): row for row in rows}
    assert by_name["images",][:2] == ["4096", "1"]
    assert by_name["default", "load/parse"][:2] == ["2000000", "1"]
    for column in range(5):
        parts = [int(row[column]) for row in rows[1:]]
        assert sum(parts) == int(rows[0][column])


@pytest.mark.parametrize(
    ("expression", "answer"),
    [
        ("named->data", r"is byte 0 of MemInfo .*: inline of 4096 bytes .*, name 'lookup table'"),
        ("(char *)named->data + 4095", r"is byte 4095 of MemInfo"),
        ("(char *)named->data + 4096", r"is in no known buffer"),
        ("named", r"is the header of MemInfo"),
        ("block", r"block of 2000000 bytes at .*, policy 'default', scope 'load/parse'"),
        ("moved->data", r"resizable of 9000 bytes"),
        ("unlisted->data", r"is byte 0 of MemInfo .*: inline of 1234 bytes"),
        ("0", r"is in no known buffer"),
        ("-1", r"is in no known buffer"),
    ],
)
def test_find_describes_an_address(program, core, expression, answer):
    said = gdb(program, core[0], *commands(f"memrt find {expression}"))
    assert re.search(answer, said.splitlines()[-1]), said


def test_meminfo_prints_name_despite_decoy_of_its_key(program):
    # Write the key as the serial number of the first slot of each partition.
    decoy = (
        "python import struct; from memrt_gdb.live_set import parts_of_live_set; "
        '[gdb.selected_inferior().write_memory(int(part["table"]["slots"].address) + 8, '
        'struct.pack("<Q", int(gdb.parse_and_eval("named")))) '
        'for part in parts_of_live_set() if int(part["table"])]'
    )
    said = gdb(program, *commands("run", "frame function main", decoy, "p *named"))
    assert re.search(r"inline of 4096 bytes at .*, name 'lookup table'", said), said


def test_find_knows_a_freed_buffer_in_checking_mode(program):
    said = gdb(program, *commands("run", "memrt find freed"), MEMRT_CHECK="1")
    answer = r"is in freed buffer of 300 bytes at .*, policy 'default'"
    assert re.search(answer, said.splitlines()[-1]), said


def test_meminfos_and_policies_are_pretty_printed(ask):
    said = ask("frame function main", "p *named", "p *images", "p *unlisted")
    assert re.search(r"inline of 4096 bytes at 0x\w+, 2 references, policy 'images', name ", said)
    assert re.search(
        r"= \{refct = 2, dtor = 0x0, dtor_info = 0x0, data = 0x\w+, size = 4096\}", said
    )
    assert "policy 'images' = {index = 1, alignment = 64, refs = " in said
    assert "inline of 1234 bytes" in said


@pytest.mark.parametrize(
    ("command", "answer"),
    [
        ("memrt live --sort colour", "memrt live: argument --sort: invalid choice: 'colour'"),
        ("memrt live --limit many", "memrt live: argument --limit: invalid int value: 'many'"),
        ("memrt live --limit 0", "4 live buffers"),
        ("memrt find", "memrt find: the following arguments are required: address"),
        ("memrt find no_such_variable", 'No symbol "no_such_variable" in current context'),
        ("memrt stats of what", "memrt stats: unrecognized arguments: of what"),
    ],
)
def test_bad_arguments_give_no_traceback(program, core, command, answer):
    said = gdb(program, core[0], *commands(command))
    assert answer in said
    assert "Traceback" not in said


def test_commands_without_a_program_give_a_hint(program):
    for command in ("live", "stats", "find 1"):
        said = gdb(program, *commands(f"memrt {command}"))
        assert "memrt: no program: start one, attach to one, or open a core file" in said


def test_missing_memrt_and_missing_debug_information_differ(folder):
    said = gdb(*commands("starti", "memrt live"), "--args", "/bin/sleep", "9")
    assert "memrt: the program has no libmemrt with debug information" in said
    script = folder / "aborts.py"
    script.write_text("import memrt, os; os.abort()")
    copied = shutil.copy(memrt.get_library(), folder)  # without the debug file
    run = commands(f"set environment LD_PRELOAD {copied}", "run", "memrt live")
    said = gdb(*run, "--args", sys.executable, script)
    assert f"memrt: {copied} has no debug information: build" in said


PYTHON = """
import os, memrt, numpy as np
with memrt.debug.tracking(), memrt.Policy(name="frames"), memrt.scope("read"):
    array = np.ones(100_000)
    named = memrt.alloc(1000, name="of Python")
os.abort()
"""


@pytest.mark.parametrize("preloaded", [LIBRARY, ""], ids=["preloaded", "of the package"])
def test_arrays_of_a_python_process_are_listed(folder, preloaded):
    """The package uses a preloaded library, else its own library, which has a debug file."""
    script = folder / "arrays.py"
    script.write_text(PYTHON)
    run = commands(f"set environment LD_PRELOAD {preloaded}", "run", "memrt live --sort size")
    said = gdb(*run, "--args", sys.executable, script)
    rows = table(said, "id size")
    assert [without(row, 0, 3, 4) for row in rows] == [
        ["800000", "1", "block", "frames", "read"],
        ["1000", "1", "inline", "frames", "read", "of Python"],
    ]


def test_gdb_loads_the_script_beside_the_library(program, core, folder):
    beside = folder / "beside"
    beside.mkdir()
    shutil.copy(LIBRARY, beside)
    shutil.copy(SCRIPT, beside / f"{LIBRARY.name}-gdb.py")
    shutil.copytree(MODULES, beside / f"{LIBRARY.name}-gdb")
    run = commands(f"set environment LD_LIBRARY_PATH {beside}", "run", "memrt live")
    trusting = f"-iex=add-auto-load-safe-path {beside}"
    bare = folder / "bare"
    include = f"-I{ROOT}/api/include"
    source = Path(__file__).with_name("program.c")
    subprocess.run(["cc", "-g", include, "-o", bare, source, LIBRARY], check=True)
    assert "4 live buffers" in gdb(trusting, bare, *run, source=None)


def test_second_script_replaces_the_modules_of_the_first(core, program, folder):
    other = folder / "other"
    shutil.copytree(SCRIPT.parent, other)
    tables = other / MODULES.name / "tables.py"
    tables.write_text(tables.read_text().replace("MiB", "mebibytes"))
    link = folder / "linked.py"
    link.symlink_to(other / SCRIPT.name)
    said = gdb(program, core[0], *commands("memrt live", f"source {link}", "memrt live"))
    totals = [line for line in said.splitlines() if line.startswith("4 live buffers")]
    assert totals == ["4 live buffers, 1.9 MiB", "4 live buffers, 1.9 mebibytes"]


def test_package_has_the_gdb_script_beside_its_library():
    library = Path(memrt.get_library()).resolve()
    assert Path(f"{library}-gdb.py").read_text() == SCRIPT.read_text()
    modules = [path.name for path in MODULES.glob("*.py")]
    assert len(modules) > 1
    for name in modules:
        assert Path(f"{library}-gdb", name).read_text() == (MODULES / name).read_text()


def test_package_has_a_debug_file_with_lines(folder):
    library = Path(memrt.get_library()).resolve()
    assert (library.parent / ".debug" / f"{library.name}.debug").is_file()
    said = gdb(library, *commands("info line memrt__block_new"))
    assert re.search(r'Line \d+ of "\./runtime/meminfo/block\.c" starts at address', said), said
