"""What a forked child inherited, and what is its own, in figures."""

import sys

import pytest

IGNORED = ("-W", "ignore::DeprecationWarning")  # of forks with threads, from Python 3.12 on

HEAD = """
import os, sys, threading, traceback
import memrt, numpy as np

def in_child(act):
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            act()
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0

def own(stats):
    return stats.live - stats.inherited
"""


def test_a_process_that_was_not_forked_inherited_nothing(run_python):
    result = run_python(HEAD + "kept = memrt.alloc(100)\nprint(memrt.stats().inherited)")
    assert result.stdout == "0\n"


ACCOUNTS = """
policy = memrt.Policy(name="p")
with memrt.scope("stage") as stage:
    inherited = [memrt.alloc(1000), memrt.zeros(5000, np.uint8, policy=policy)]
with policy:
    inherited.append(np.ones(100, np.uint8))

def child():
    accounts = [memrt.stats, policy.stats, stage.stats]
    assert [a().inherited for a in accounts] == [6100, 5100, 6000]
    assert [a().inherited_blocks for a in accounts] == [3, 2, 2]
    assert [own(a()) for a in accounts] == [0, 0, 0]
    with memrt.scope("stage"):
        mine = [memrt.alloc(20), memrt.alloc(3, policy=policy)]
    with policy:
        mine.append(np.ones(7, np.uint8))
    assert [own(a()) for a in accounts] == [30, 10, 23]
    assert [memrt.meminfo(a[2]).policy for a in (inherited, mine)] == ["p", "p"]
    inherited.clear()
    assert [a().inherited for a in accounts] == [0, 0, 0]
    assert [a().live for a in accounts] == [30, 10, 23]
    assert memrt.stats().inherited_error == 0

in_child(child)
assert memrt.stats().inherited == 0
"""


def test_a_child_tells_what_it_inherited_from_its_own(run_python):
    run_python(HEAD + ACCOUNTS)


THREADS = """
memrt.enable()
policy = memrt.Policy(name="busy")
kept = [np.ones(1000), memrt.alloc(3000, policy=policy)]
stop, begun = threading.Event(), threading.Barrier(3)

def churn():
    begun.wait()
    while not stop.is_set():
        np.ones(100); memrt.alloc(5000, policy=policy); np.zeros(10**6)

def child():
    assert own(memrt.stats()) == own(policy.stats()) == 0
    mine = [memrt.alloc(12345), memrt.alloc(678, policy=policy)]
    assert own(memrt.stats()) == 13023 and own(policy.stats()) == 678
    kept.clear()
    assert own(memrt.stats()) == 13023 and own(policy.stats()) == 678
    mine.clear()
    assert own(memrt.stats()) == own(policy.stats()) == 0

threads = [threading.Thread(target=churn) for _ in range(2)]
for thread in threads: thread.start()
begun.wait()
for _ in range(20): in_child(child)
stop.set()
for thread in threads: thread.join()
kept.clear()
print(memrt.stats().live)
"""


def test_own_figures_are_exact_whatever_threads_of_the_parent_were_doing(run_python):
    assert run_python(HEAD + THREADS, flags=IGNORED).stdout == "0\n"


MULTIPROCESSING = """
import multiprocessing, sys
import memrt, numpy as np

kept = memrt.zeros(1000, np.uint8)

def work(number):
    made = memrt.alloc(number)
    stats = memrt.stats()
    return stats.inherited, stats.live - stats.inherited

if __name__ == "__main__":
    with multiprocessing.get_context(sys.argv[1]).Pool(2) as pool:
        for number, (inherited, own) in enumerate(pool.map(work, range(1, 9)), 1):
            assert inherited == (1000 if sys.argv[1] == "fork" else 0), inherited
            assert own == number + (1000 - inherited), own
    print(memrt.stats().inherited)
"""


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_workers_of_multiprocessing_inherit_when_they_are_forked(method, run_program, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(MULTIPROCESSING)
    result = run_program(sys.executable, *IGNORED, program, method)
    assert result.stdout == "0\n"


LISTED = """
def own():
    return sorted((b.size, b.name) for b in memrt.live() if not b.inherited)

unnamed = memrt.alloc(500)
with memrt.tracking():
    kept = memrt.alloc(5000)
assert [b.inherited for b in memrt.live()] == [False]

def grandchild():
    assert own() == []
    assert sorted(b.size for b in memrt.live()) == [300, 500, 5000]

def child():
    global kept
    assert own() == []
    (row,) = memrt.live()
    assert row.inherited and repr(row).endswith(", inherited>") and row.to_dict()["inherited"]
    with memrt.tracking():
        mine = memrt.alloc(300)
    unnamed.name = "born before"
    assert own() == [(300, None)]
    assert not repr(memrt.live()[1]).endswith("inherited>")
    in_child(grandchild)
    kept = None
    assert sorted((b.size, b.inherited) for b in memrt.live()) == [(300, False), (500, True)]

in_child(child)
assert [b.inherited for b in memrt.live()] == [False]
"""


def test_a_child_that_lists_buffers_tells_its_own_from_those_it_inherited(run_python):
    run_python(HEAD + LISTED, env={"MEMRT_CHECK": "0", "MEMRT_TRACK": "0"})
