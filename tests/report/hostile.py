"""A program with hostile names: of scopes, files, buffers and the program."""

# Names that would run, or break the page, without escaping.
HOSTILE = "<img src=x onerror=injected=1></script><script>injected=2<!--"

PROGRAM = f"""\
import ctypes, time
import numpy as np, memrt

def load():
    return [np.ones(100_000) for _ in range(20)]

def work(arrays):
    return sum((array * 2).sum() for array in arrays)

with memrt.scope("load"):
    kept = load()
with memrt.scope("train"):
    with memrt.scope({HOSTILE!r}):
        high = np.ones(1_000_000)
        work(kept)
        time.sleep(0.3)
del high
namespace = {{"np": np}}
exec(compile("def f(): return np.ones(5000)\\n", {HOSTILE!r}, "exec"), namespace)
foreign = namespace["f"]()
named = memrt.alloc(77, name={HOSTILE!r})
head = np.ones(500_000)[:10]
lost = np.ones(30_000)
ctypes.pythonapi.Py_IncRef(ctypes.py_object(lost))
del lost
small = [np.ones(20) for _ in range(200)]
"""
