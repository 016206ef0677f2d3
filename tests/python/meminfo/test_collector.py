"""The cycle collector may run inside any call that allocates, and may run any Python code there."""

import pytest
from gil import PYTHON_CHECKER, needs_gil

# Before Python 3.12 the collector runs where an object is created; since 3.12, between
# instructions. With these settings a use of freed memory crashes: Python overwrites freed memory,
# and the C library unmaps blocks above 4096 bytes.
STRICT = {
    "PYTHONMALLOC": PYTHON_CHECKER,
    "MALLOC_MMAP_THRESHOLD_": "4096",
    "MALLOC_TOP_PAD_": "0",
}
HEAD = """
import gc
from memrt import _memrt
inside = False
def collected(phase, info):
    if inside and phase == "start":
        change()
gc.callbacks.append(collected)
def call(objects, function, *arguments):
    global inside
    gc.collect()  # which also frees the objects that the interpreter keeps for reuse
    inside = True
    gc.set_threshold(gc.get_count()[0] + objects)
    try:
        return function(*arguments)
    finally:
        inside = False
        gc.set_threshold(10**9)
"""

FRAME = """
class Value:
    pass
def generator():
    a, b, c, d = Value(), Value(), Value(), Value()
    yield
def change():
    if running:
        running.pop().close()
        frame.clear()
for objects in range(20):
    running = [generator()]
    next(running[0])
    frame = running[0].gi_frame
    found = call(objects, _memrt.frame_variables, frame)
    assert [type(value) for name, value in found] == [Value] * len(found)
    del found
"""

DICT = """
class Key:
    pass
for objects in range(20):
    value = Key()
    table = {Key(): value}
    change = table.clear
    kind, key = call(objects, _memrt.find_place, table, value)
    assert (kind, type(key)) == ("value", Key)
    del key
"""

# A file name that is not valid UTF-8 raises an exception, and the exception allocates objects. The
# end of tracking frees the cache.
CACHE = """
import memrt
def track():
    return _memrt.tracking_open((True, 8, 0, 1))
def change():
    global tracked
    _memrt.tracking_close(tracked)
    tracked = track()
def maker(file):
    names = {"memrt": memrt}
    exec(compile("def make(): return memrt.alloc(100)", file, "exec"), names)
    return names["make"]
tracked = track()
for objects in range(40):
    memrt.alloc(100)
    assert call(objects, maker(f"\\udc80{objects}.py")).nbytes == 100
"""


@pytest.mark.parametrize(
    "call", [pytest.param(FRAME, id="frame", marks=needs_gil), pytest.param(DICT, id="dict")]
)
def test_container_changed_by_collector_during_read_is_safe(call, run_python):
    run_python(HEAD + call, env=STRICT)


def test_frame_cache_freed_during_frame_lookup_is_safe(run_python):
    run_python(HEAD + CACHE, env=STRICT)
