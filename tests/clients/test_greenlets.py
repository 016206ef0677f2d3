"""The reach of policies and enable() under greenlet, gevent and eventlet."""

import contextvars
import subprocess
import sys

import greenlet
import memrt
import pytest


@pytest.fixture
def enabled():
    memrt.enable(memrt.Policy(name="on"))
    yield
    memrt.disable()


def test_new_greenlet_keeps_default_allocator(enabled):
    assert greenlet.greenlet(memrt.handler_name).switch() == "default_allocator"


def test_greenlet_with_copied_context_uses_policy(enabled):
    made = greenlet.greenlet(memrt.handler_name)
    made.gr_context = contextvars.copy_context()
    assert made.switch() == "memrt:on"


def test_greenlet_that_calls_enable_uses_policy(enabled):
    def work():
        memrt.enable()
        return memrt.handler_name()

    assert greenlet.greenlet(work).switch() == "memrt:on"


def test_policy_entered_in_greenlet_stays_inside():
    def work():
        with memrt.Policy(name="inside"):
            found = memrt.handler_name()
            main.switch(found)
            return memrt.handler_name()

    main = greenlet.getcurrent()
    made = greenlet.greenlet(work)
    with memrt.scope("main") as scope:
        assert made.switch() == "memrt:inside"
        assert memrt.handler_name() == "default_allocator"
        assert memrt.current_scope() == scope
        assert made.switch() == "memrt:inside"


PROGRAM = """
import memrt, threading
from concurrent.futures import ThreadPoolExecutor

def by_thread():
    box = []
    thread = threading.Thread(target=lambda: box.append(memrt.handler_name()))
    thread.start()
    thread.join()
    return box[0]

def by_executor():
    with ThreadPoolExecutor(1) as executor:
        return executor.submit(memrt.handler_name).result()

memrt.enable(memrt.Policy(name="on"))
print(by_thread(), by_executor(), by_library())
memrt.disable()
print(by_thread(), by_executor(), by_library())
"""

LIBRARIES = {
    "gevent": "import gevent\ndef by_library(): return gevent.spawn(memrt.handler_name).get()\n",
    "eventlet": "import eventlet\n"
    "def by_library(): return eventlet.spawn(memrt.handler_name).wait()\n",
}
PATCHES = {
    "gevent": "from gevent import monkey\nmonkey.patch_all()\n",
    "eventlet": "import eventlet\neventlet.monkey_patch()\n",
}


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("patched", [True, False])
def test_enable_reaches_threads_but_not_spawned_greenlets(library, patched):
    code = (PATCHES[library] if patched else "") + LIBRARIES[library] + PROGRAM
    result = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert result.stdout.splitlines() == [
        "memrt:on memrt:on default_allocator",
        "default_allocator default_allocator default_allocator",
    ]
