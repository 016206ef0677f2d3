"""Replacement of the default policy's allocator, by a function and by MEMRT_ALLOCATOR."""

import subprocess
from pathlib import Path

import memrt
import pytest

# A library whose constructor uses memrt: the table is a guard over malloc.
GUARDED = """
#include <stdlib.h>
#include <memrt/memrt.h>

memrt_allocator_t memrt_allocator;
const memrt_allocator_t old = {.struct_size = sizeof(memrt_allocator_t), .version = 7};

__attribute__((constructor)) static void fill_table(void)
{
    const memrt_api_t *api = memrt_get_api(MEMRT_ABI_MAJOR, NULL);
    if (api->allocator_guard(api->allocator_system(), &memrt_allocator) != MEMRT_OK) {
        abort();
    }
    if (getenv("USE_DEFAULT") != NULL) {
        api->block_free(NULL, api->block_alloc(NULL, 10), 10);
    }
}
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    folder = tmp_path_factory.mktemp("guarded")
    source, built = folder / "guarded.c", folder / "guarded.so"
    source.write_text(GUARDED)
    own = Path(memrt.get_library())
    command = ["cc", "-shared", "-fPIC", "-O1", f"-I{memrt.get_include()}", str(source), str(own)]
    subprocess.run([*command, f"-Wl,-rpath,{own.parent}", "-o", str(built)], check=True)
    return built


BY_FUNCTION = """
import threading
import memrt
import numpy as np

calls = []

def allocate(nbytes, alignment):
    calls.append(nbytes)
    return bytearray(nbytes + alignment) if alignment <= 16 else None

def refused(allocator):
    try:
        memrt.debug.set_default_allocator(allocator)
    except Exception as error:
        return type(error).__name__

memrt.stats(), memrt.release_unused(), memrt.debug.policies(), memrt.Policy()  # no uses
assert refused(5) == "TypeError"
assert refused("./no_such_library.so") == "OSError"
counts = memrt.adaptors.counting(memrt.adaptors.aligning(allocate))
assert refused(counts) is None
memrt.enable()
kept = [np.ones(1000), memrt.zeros(50)]
thread = threading.Thread(target=lambda: kept.append(np.arange(10)))
thread.start()
thread.join()
with memrt.scope("inside"):
    kept.append(np.ones(3))
made = len(calls)
assert made == counts.counts.allocations >= 4
with memrt.Policy():
    kept.append(np.ones(3))
assert len(calls) == made
assert kept[0].sum() == 1000
assert memrt.stats().live >= 8000
assert refused(memrt.adaptors.counting()) == "RuntimeError"
memrt.debug.policies()[0].stats()
print("end")
"""


def test_python_functions_serve_the_default_policy(run_python):
    result = run_python(BY_FUNCTION)
    assert (result.stdout, result.stderr) == ("end\n", "")


BY_VARIABLE = """
import memrt
import numpy as np

option = {row.name: row.value for row in memrt.debug.options()}["MEMRT_ALLOCATOR"]
memrt.enable()
array = np.ones(100)
try:
    memrt.debug.set_default_allocator(memrt.adaptors.counting())
except RuntimeError:
    print(option, array.sum())
"""


def test_variable_names_a_library_that_uses_memrt(run_python, library):
    result = run_python(BY_VARIABLE, env={"MEMRT_ALLOCATOR": f"{library}:"})
    assert (result.stdout, result.stderr) == (f"{str(library)[:31]} 100.0\n", "")


@pytest.mark.parametrize(
    ("suffix", "use", "why"),
    [
        (":no_such_symbol", {}, "the library exports no symbol 'no_such_symbol'"),
        (":old", {}, "the table has another version, or lacks alloc or free"),
        ("", {"USE_DEFAULT": "1"}, "the default policy was used during the load"),
        (".missing", {}, "guarded.so.missing: cannot open shared object file"),
    ],
)
def test_bad_variable_is_ignored_with_a_warning(run_python, library, tmp_path, suffix, use, why):
    source = f"./{library.name}{suffix}"
    (tmp_path / library.name).symlink_to(library)
    result = run_python(BY_VARIABLE, env={"MEMRT_ALLOCATOR": source, **use})
    assert result.stdout == "none 100.0\n"
    assert f"LIBRARY:SYMBOL of an allocator, got '{source}' (" in result.stderr
    assert why in result.stderr
    assert result.stderr.count("Warning") == 1
