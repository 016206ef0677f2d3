"""Threads that use public names for the first time at the same time."""

FIRST_USES = """
import random, sys, threading
import memrt

modules = [memrt, memrt.debug, memrt.telemetry, memrt.types, memrt.testing]
names = [(module, name) for module in modules for name in module.__all__]
begin, errors = threading.Barrier(8), []

def work(number):
    order = random.Random(number).sample(names, len(names))
    begin.wait()
    try:
        for module, name in order:
            getattr(module, name)
    except BaseException as error:
        errors.append(error)

threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
if errors:
    raise errors[0]
"""

FIRST_IMPORTS = """
import threading

begin, found = threading.Barrier(8), []

def work():
    begin.wait()
    import memrt
    mi = memrt.alloc(nbytes=100, alignment=128)
    found.append((mi.nbytes, memrt.zeros(shape=(2, 3), dtype="f4").sum(), memrt.stats().live > 0))

threads = [threading.Thread(target=work) for _ in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert found == [(100, 0, True)] * 8, found
"""


def test_threads_use_all_public_names_for_the_first_time(run_python):
    for _ in range(3):
        assert run_python(FIRST_USES).stderr == ""


def test_threads_import_memrt_for_the_first_time(run_python):
    for _ in range(3):
        assert run_python(FIRST_IMPORTS).stderr == ""
