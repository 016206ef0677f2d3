"""memrt.workers.share: settings for worker processes, and their statistics in the parent."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import memrt
import memrt.workers
import pytest
from memrt._support.process_folder import make_folder, start_time
from memrt._workers import member, sharing
from memrt._workers.results import own_figures

FIGURES = """\
def figures(shared):
    found = shared.stats()
    return {
        "states": sorted(worker.state for worker in found.workers),
        "live": found.total.live,
        "total": found.total.total,
        "peaks": sorted(worker.stats.peak for worker in found.workers),
        "failed": found.total.failed,
        "scopes": {path: stats.total for path, stats in found.scopes.items()},
        "problems": [problem for worker in found.workers for problem in worker.problems],
    }
"""


@pytest.fixture
def program(tmp_path):
    """Return a function that runs a program. The result is the JSON value that it prints last."""

    def run(code, **environment):
        script = tmp_path / "program.py"
        script.write_text(FIGURES + code)
        result = subprocess.run(
            [sys.executable, str(script)], capture_output=True, text=True, timeout=240, check=False,
            env={**os.environ, "TMPDIR": str(tmp_path), "PYTHONWARNINGS": "ignore", **environment},
        )  # fmt: skip
        assert (result.returncode, result.stderr) == (0, "")
        assert list(tmp_path.glob("memrt-*")) == []  # the records are removed
        return json.loads(result.stdout.splitlines()[-1])

    return run


POOL = """\
import json, multiprocessing, os, signal, time
from concurrent.futures import ProcessPoolExecutor
import numpy as np, memrt, memrt.workers
def work(size):
    array = np.zeros(size)
    policy = memrt.debug.enabled()
    soft = [each.soft for each in memrt.debug.limits() if each.soft]
    scope = memrt.current_scope()
    return memrt.is_managed(array), policy.name, policy.alignment, scope.path, soft
def ask_too_much(size):
    try:
        np.zeros(size)
    except MemoryError:
        return "refused"
def pool(context):
    with context.Pool(2) as pool:
        found = pool.map(work, [100_000] * 4, chunksize=1)
        refused = pool.apply(ask_too_much, (4_000_000,))
        pool.close()
        pool.join()
    return found, refused
def executor(context):
    with ProcessPoolExecutor(2, mp_context=context) as pool:
        return list(pool.map(work, [100_000] * 4)), pool.submit(ask_too_much, 4_000_000).result()
if __name__ == "__main__":
    context = multiprocessing.get_context({method!r})
    {before}
    memrt.enable(memrt.Policy(128, "mine"))
    memrt.limit("1 GiB", soft="512 MiB")
    with memrt.scope("outer"), memrt.scope("inner", limit="16 MiB", soft="8 MiB"):
        with memrt.workers.share() as shared:
            found, refused = {kind}(context)
    print(json.dumps([found, refused, figures(shared), os.environ.get("PYTHONPATH")]))
"""
METHODS = ["fork", "spawn", "forkserver"]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", ["pool", "executor"])
def test_pool_has_policy_limit_and_scope_and_reports_statistics(program, kind, method):
    code = POOL.format(method=method, kind=kind, before="")
    found, refused, figures, path = program(code, PYTHONPATH="/nowhere")
    assert found == [[True, "mine", 128, ["outer", "inner"], [512 << 20, 8 << 20]]] * 4
    assert refused == "refused"
    assert set(figures["states"]) == {"ended"}
    assert (figures["live"], figures["failed"], figures["problems"]) == (0, 1, [])
    assert figures["total"] == figures["scopes"]["outer/inner"] == 4 * 800_000
    assert path == "/nowhere"


def test_fork_server_older_than_the_block_is_reached(program):
    before = "context.Process(target=len, args=([],)).start()"
    found, _, figures, _ = program(POOL.format(method="forkserver", kind="pool", before=before))
    assert found == [[True, "mine", 128, ["outer", "inner"], [512 << 20, 8 << 20]]] * 4
    assert figures["total"] == 4 * 800_000


KILLED = """\
import json, multiprocessing, os, signal, sys, time
import numpy as np, memrt.workers
def work(is_seen):
    kept = np.zeros(500_000)
    is_seen.wait()
    {end}
if __name__ == "__main__":
    kept = memrt.zeros(3_000_000)
    with memrt.workers.share(limit="50 MB") as shared:
        context = multiprocessing.get_context({method!r})
        is_seen = context.Event()
        worker = context.Process(target=work, args=(is_seen,))
        worker.start()
        while figures(shared)["peaks"] != [4_000_000]:
            time.sleep(0.01)
        is_seen.set()
        worker.join()
        inside = figures(shared)
    pages = [name for name in os.listdir(f"/dev/shm/memrt-{{os.geteuid()}}")
             if name.startswith(f"{{worker.pid}}-")]
    print(json.dumps([inside, figures(shared), pages]))
"""
ENDS = {
    "killed": ("os.kill(os.getpid(), signal.SIGKILL)", "killed", 4_000_000),
    "exit": ("os._exit(3)", "killed", 4_000_000),
    "exception": ("sys.stderr = open(os.devnull, 'w'); 1 / 0", "ended", None),
    "exec": ("os.execlp('true', 'true')", "ended", 4_000_000),
}


@pytest.mark.parametrize("method", ["fork", "spawn"])
@pytest.mark.parametrize("end", ENDS)
def test_every_end_of_a_worker_leaves_its_statistics(program, end, method):
    statement, state, live = ENDS[end]
    inside, after, pages = program(KILLED.format(end=statement, method=method))
    assert inside == after
    assert (after["states"], after["peaks"]) == ([state], [4_000_000])
    assert after["live"] == live or live is None  # the traceback holds the array
    assert pages == []


def test_workers_of_workers_report_to_all_blocks_around(program):
    code = """\
import json, multiprocessing, os, signal, time
import numpy as np, memrt.workers
def grandchild(die):
    kept = np.zeros(200_000)
    time.sleep(0.3)
    if die:
        os.kill(os.getpid(), signal.SIGKILL)
def child(out):
    with memrt.workers.share() as shared:
        for die in (False, True):
            process = multiprocessing.Process(target=grandchild, args=(die,))
            process.start()
            process.join()
    out.send(figures(shared))
if __name__ == "__main__":
    multiprocessing.set_start_method("spawn")
    mine, theirs = multiprocessing.Pipe()
    with memrt.workers.share() as shared:
        process = multiprocessing.Process(target=child, args=(theirs,))
        process.start()
        process.join()
    print(json.dumps([mine.recv(), figures(shared)]))
"""
    inner, outer = program(code)
    for found in (inner, outer):
        assert found["states"] == ["ended", "killed"]
        assert (found["total"], found["live"]) == (3_200_000, 1_600_000)


def test_inherited_memory_is_not_of_the_worker(program):
    code = """\
import json, os
import numpy as np, memrt, memrt.workers
memrt.enable()
with memrt.scope("load"):
    kept = [np.zeros(1_000_000), np.zeros(1_000_000)]
with memrt.workers.share() as shared:
    if os.fork() == 0:
        kept.pop()
        own = np.zeros(50_000)
        import sys
        sys.exit()
    os.wait()
worker, = shared.stats().workers
stats = worker.stats
print(json.dumps([stats.live, stats.peak, stats.alloc - stats.free, figures(shared)["scopes"]]))
"""
    assert program(code) == [400_000, 400_000, 1, {"load": 0}]


def test_started_python_joins_and_resource_tracker_does_not(program):
    code = """\
import json, os, subprocess, sys
from multiprocessing import resource_tracker
import memrt.workers
child = "import numpy as np; kept = np.zeros(100_000)"
again = f"import os, sys; {child}; os.execv(sys.executable, [sys.executable, '-c', {child!r}])"
with memrt.workers.share() as shared:
    for flags in (["-c", again], ["-E", "-c", child]):
        subprocess.run([sys.executable, *flags], check=True)
    resource_tracker.ensure_running()
    maps = open(f"/proc/{resource_tracker._resource_tracker._pid}/maps").read()
print(json.dumps([figures(shared), "libmemrt" in maps]))
"""
    figures, tracker = program(code)
    assert (figures["states"], figures["total"]) == (["ended"] * 2, 1_600_000)
    assert not tracker


def test_setting_that_fails_in_a_worker_is_a_problem(program):
    code = """\
import json, os, time, memrt, memrt.workers
capture = memrt.workers.capture
memrt.workers.capture = lambda policy, limit: {**capture(policy, limit), "limit": "lots"}
with memrt.workers.share() as shared:
    if os.fork() == 0:
        os._exit(0)
    os.wait()
print(json.dumps([figures(shared)["problems"], repr(shared.stats())]))
"""
    (problem,), shown = program(code)
    assert problem.startswith("ValueError: ")
    assert "got 'lots'" in problem
    assert problem in shown


def test_bad_use_is_refused():
    with pytest.raises(TypeError, match=r"policy must be a memrt[.]Policy or None, got int"):
        memrt.workers.share(3)
    with pytest.raises(ValueError, match="got 'lots'"):
        memrt.workers.share(limit="lots")
    shared = memrt.workers.share(limit="80%")
    with shared:
        with pytest.raises(RuntimeError, match="already active"):
            memrt.workers.share().__enter__()
        assert repr(shared) == "<memrt.workers.share, active: 0 workers>"
    assert repr(shared) == "<memrt.workers.share, inactive: 0 workers>"
    shared.__exit__()
    assert repr(shared.stats()) == ("memrt.types.WorkersStats: 0 workers, 0 B live, 0 B in total")


def test_failed_entry_and_exit_restore_the_process(tmp_path, monkeypatch):
    def fail(*_):
        raise MemoryError

    def state():
        return os.environ.get("PYTHONPATH"), os.environ.get("_MEMRT_WORKERS"), member._for_children

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    before = state()
    monkeypatch.setattr(member, "Ticket", fail)
    with pytest.raises(MemoryError):
        memrt.workers.share().__enter__()
    monkeypatch.undo()
    assert (state(), list(tmp_path.iterdir())) == (before, [])
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(sharing, "collect", fail)
    with pytest.raises(MemoryError), memrt.workers.share():
        pass
    with pytest.raises(KeyError), memrt.workers.share():  # the first exception stays
        raise KeyError
    assert (state(), list(tmp_path.iterdir())) == (before, [])


def test_damaged_records_are_left_out(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with memrt.workers.share() as shared:
        folder = Path(shared._sharing.folder)
        (folder / "1-1-a").write_text("{")
        (folder / "1-1-b").write_text(json.dumps({"pid": 1}))
        record = {"pid": 1, "parent": 0, "started": 1, "last": None, "base": None}
        (folder / "1-1-c").write_text(json.dumps({**record, "command": "x", "problems": []}))
        assert (len(shared.stats().workers), shared.stats().unknown) == (0, 1)
        assert "1 killed before" in repr(shared.stats())


def test_figures_of_a_worker_leave_out_inherited_figures():
    zero = dict.fromkeys(memrt.stats().to_dict(), 0)
    base = {**zero, "alloc": 5, "free": 2, "live": 300, "inherited": 300, "inherited_blocks": 3,
            "total": 500, "peak": 300, "cached": 70}  # fmt: skip
    after = {**base, "alloc": 7, "free": 4, "live": 250, "inherited": 200, "inherited_blocks": 2,
             "total": 600, "peak": 350, "cached": 0}  # fmt: skip
    own = own_figures(after, base)
    assert (own.alloc, own.free, own.live, own.peak, own.total) == (2, 1, 50, 50, 100)
    assert (own.cached, own.inherited, own.inherited_blocks) == (0, 0, 0)


def test_folders_of_dead_processes_are_removed(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    mine = Path(make_folder())
    namespace = os.stat("/proc/self/ns/pid").st_ino
    pid = os.getpid()
    dead = tmp_path / f"memrt-{namespace}-{pid}-{start_time(pid) + 1}-abc"
    other = tmp_path / f"memrt-{namespace + 1}-{pid}-1-abc"
    link = tmp_path / f"memrt-{namespace}-{pid}-2-abc"
    foreign = tmp_path / "memrt-failures-abc"
    for folder in (dead, other, foreign):
        folder.mkdir()
        (folder / "file").touch()
    link.symlink_to(other)
    again = Path(make_folder())
    assert sorted(tmp_path.iterdir()) == sorted([mine, again, other, link, foreign])
    assert (mine.stat().st_mode & 0o777, start_time(0)) == (0o700, -1)


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_command_shares_limits_and_scope_with_workers(tmp_path, method):
    script = tmp_path / "program.py"
    script.write_text("""\
import json, multiprocessing, os, signal, sys, time
import numpy as np, memrt, memrt.workers
def work(results, die):
    kept = np.zeros(500_000)
    policy, scope = memrt.debug.enabled(), memrt.current_scope()
    limits = [each.limit for each in memrt.debug.limits()]
    results.put([memrt.is_managed(kept), policy.name, policy.alignment, scope.path, limits])
    if die:
        time.sleep(0.4)
        os.kill(os.getpid(), signal.SIGKILL)
if __name__ == "__main__":
    context = multiprocessing.get_context(sys.argv[1])
    results = context.SimpleQueue()
    memrt.limit("300 MB")
    with memrt.scope("fit", limit="100 MB"), memrt.workers.share() as inner:
        workers = [context.Process(target=work, args=(results, die)) for die in (False, True)]
        for worker in workers:
            worker.start()
        found = [results.get() for _ in workers]
        for worker in workers:
            worker.join()
    with memrt.scope("later"):
        worker = context.Process(target=work, args=(results, False))
        worker.start()
        found.append(results.get())
        worker.join()
    print(json.dumps([found, sorted(each.state for each in inner.stats().workers)]))
""")
    result = subprocess.run(
        [sys.executable, "-m", "memrt", "run", "--workers", "--alignment", "128", "--json", "out",
         script, method], cwd=tmp_path, capture_output=True, text=True, timeout=240, check=True,
        env={**os.environ, "TMPDIR": str(tmp_path), "PYTHONWARNINGS": "ignore"},
    )  # fmt: skip
    assert list(tmp_path.glob("memrt-*")) == []
    found, inner = json.loads(result.stdout)
    limits = [300_000_000, 100_000_000]
    assert found[:2] == [[True, "run", 128, ["fit"], limits]] * 2
    assert found[2] == [True, "run", 128, ["later"], limits[:1]]
    assert inner == ["ended", "killed"]
    workers = json.loads((tmp_path / "out").read_text())["workers"]
    assert sorted(each["state"] for each in workers["processes"]) == ["ended", "ended", "killed"]
    assert {path: stats["total"] for path, stats in workers["scopes"].items()} == {
        "fit": 8_000_000,
        "later": 4_000_000,
    }
    assert workers["total"]["total"] == 12_000_000
    assert "3 workers, 1 killed: sum of peaks 11.4 MiB" in result.stderr
