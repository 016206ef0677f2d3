"""memrt.dask on a LocalCluster: limits, figures by prefix, restarts, preload, other versions."""

from __future__ import annotations

import asyncio
import importlib.metadata
import json
import os
import pickle
import re
import subprocess
import sys
import threading

import memrt
import memrt.dask
import numpy as np
import pytest
from memrt._dask import cluster as calls
from memrt._dask import heartbeat, plugin, tasks
from memrt._policy.live_policies import default_policy

CLUSTER = """\
import asyncio, json, logging, sys, time
import memrt.dask
import numpy as np
from distributed import Client, LocalCluster, WorkerPlugin, wait
def load(size):
    return np.zeros(size)
def double(array):
    once = np.zeros(len(array))
    return np.add(once, array)
def managed(size):
    import memrt
    return memrt.is_managed(np.zeros(size)), memrt.current_scope() is not None
async def later(size):
    return size
def fields(client):
    return {prefix: (each.tasks, each.errors, each.failed, each.live, each.peak, each.result,
                     each.kept, each.temporary)
            for prefix, each in memrt.dask.stats(client).items()}
if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    with LocalCluster(n_workers=2, threads_per_worker=2, memory_limit="1 GiB",
                      dashboard_address=None, {options}) as cluster, Client(cluster) as client:
        {code}
"""
TWICE = """
        before = client.submit(managed, 10).result()
        memrt.dask.install(client)
        memrt.dask.install(client, limit="auto")
        arrays = client.map(load, [100_000 + i for i in range(4)])
        doubled = client.map(double, arrays)
        wait(doubled)
        after = fields(client)
        del arrays, doubled
        while fields(client)["load"][3] or fields(client)["double"][3]:
            time.sleep(0.01)
        print(json.dumps([before, client.submit(managed, 11).result(), after,
                          client.submit(later, 3).result()]))
"""
HOG = """
        memrt.dask.install(client)
        future = client.submit(load, 200_000_000)
        names = {type(future.exception()).__name__, type(client.submit(load, 10).result()).__name__}
        limits = client.run(lambda: memrt.debug.limits()[0].limit)
        print(json.dumps([sorted(names), fields(client)["load"], sorted(limits.values())]))
"""
RESTART = """
        memrt.dask.install(client, limit="300 MB")
        client.restart()
        cluster.scale(3)
        client.wait_for_workers(3)
        each = client.run(lambda: memrt.limit("300 MB"))
        found = [client.submit(managed, size, workers=[worker]).result()
                 for size, worker in enumerate(each)]
        print(json.dumps([found, list(each.values())]))
"""
REMOVED = """
        memrt.dask.install(client, limit=None)
        on = client.submit(managed, 10).result()
        client.unregister_worker_plugin("memrt")
        print(json.dumps([on, client.submit(managed, 11).result()]))
"""
REPORT = """
        memrt.dask.install(client, record=True)
        tables = client.map(load, [500_000 + i for i in range(4)])
        wait(tables)
        memrt.dask.report(client, "page.html")
        try:
            memrt.dask.report(client, "page.html")
        except FileExistsError as error:
            refused = str(error)
        memrt.dask.install(client)
        memrt.dask.report(client, "page.html", force=True)
        async def call():
            address = cluster.scheduler_address
            async with Client(address, asynchronous=True) as other:
                await memrt.dask.install(other, limit=None)
                await memrt.dask.report(other, "now.html")
                return await memrt.dask.stats(other)
        print(json.dumps([refused, list(asyncio.run(call()))]))
"""
KEYS = """
        memrt.dask.install(client, record=True, by_key=("lo*", "double-it"))
        arrays = [client.submit(load, 100_000 + i, key=("load", i)) for i in range(4)]
        doubled = client.map(double, arrays, key="double-it")
        wait([*doubled, client.submit(managed, 10)])
        found = {key: (each.prefix, each.tasks, each.live, each.peak, each.kept)
                 for key, each in memrt.dask.stats(client, by_key=True).items()}
        memrt.dask.report(client, "page.html")
        memrt.dask.install(client)
        client.submit(load, 10, key=("load", 10)).result()
        later = memrt.dask.stats(client, by_key=True)
        print(json.dumps([found, fields(client)["load"], len(later)]))
"""
UNUSUAL = """
        class Other(WorkerPlugin):
            def setup(self, worker):
                import memrt
                memrt._memrt.set_handler(memrt.Policy(name="other").handler)
        class Table:
            def fill(self, size):
                self.array = np.zeros(size)
                return self.array.size
        def threads(size):
            import memrt, threading
            found = []
            def run():
                found.append(memrt.is_managed(np.zeros(size)))
            each = threading.Thread(target=run)
            each.start()
            each.join()
            return found
        def processes(size):
            import memrt, os, subprocess
            child = os.fork()
            if child == 0:
                os._exit(int(not memrt.is_managed(np.ones(size))))
            script = f"import numpy; print(numpy.zeros({size}).nbytes)"
            output = subprocess.check_output([sys.executable, "-c", script], text=True)
            return os.waitpid(child, 0)[1], int(output)
        def slow(size):
            array = np.zeros(size)
            time.sleep(1)
            return array
        def name():
            import memrt
            return memrt.handler_name()
        client.register_plugin(Other(), name="other")
        memrt.dask.install(client)
        cancelled = client.map(slow, [1000, 1001, 1002, 1003, 1004, 1005, 1006, 1007])
        time.sleep(0.5)
        client.cancel(cancelled)
        actor = client.submit(Table, actor=True).result()
        filled = actor.fill(1000).result()
        found = [client.submit(threads, 1000).result(), client.submit(processes, 1000).result()]
        handler = client.submit(name).result()
        del cancelled
        while "slow" not in memrt.dask.stats(client) or memrt.dask.stats(client)["slow"].live:
            time.sleep(0.01)
        print(json.dumps([filled, found, handler, memrt.dask.stats(client)["threads"].live]))
"""


@pytest.fixture
def cluster(tmp_path):
    """Return a function that runs code with a cluster of two workers, and returns its result."""

    def run(code, options="processes=True"):
        script = tmp_path / "program.py"
        script.write_text(CLUSTER.replace("{code}", code.strip()).replace("{options}", options))
        output = subprocess.check_output(
            [sys.executable, script], text=True, timeout=200, cwd=tmp_path,
            env={**os.environ, "DASK_TEMPORARY_DIRECTORY": str(tmp_path),
                 # The profiler may hold the frame of a task, with its variables, after the end.
                 "DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED": "False"},
        )  # fmt: skip
        return json.loads(output.splitlines()[-1])

    return run


@pytest.mark.parametrize("processes", [True, False])
def test_tasks_count_by_prefix(cluster, processes):
    before, installed, figures, later = cluster(TWICE, f"processes={processes}")
    assert (before, installed, later) == ([False, False], [True, True], 3)
    tasks, errors, failed, live, peak, result, kept, temporary = figures["load"]
    assert (tasks, errors, failed) == (4, 0, 0)
    assert live == kept == 8 * (400_000 + 6)
    assert result <= peak <= result + 1000
    assert temporary < 4000
    tasks, errors, failed, live, peak, result, kept, temporary = figures["double"]
    assert (tasks, errors, live) == (4, 0, 8 * (400_000 + 6))
    assert 1.9 < peak / result < 2.1
    assert temporary >= 8 * 400_000


def test_task_above_the_limit_fails_alone(cluster):
    names, (tasks, errors, failed, *_), limits = cluster(HOG)
    assert names == ["MemoryError", "ndarray"]
    assert (tasks, errors, failed) == (2, 1, 1)
    assert all(0.5 * 2**30 < limit < 0.9 * 2**30 for limit in limits)


def test_restarted_and_new_workers_are_reached(cluster):
    found, limits = cluster(RESTART)
    assert found == [[True, True]] * 3
    assert limits == [300_000_000] * 3


def test_removed_plugin_leaves_further_tasks_alone(cluster):
    on, off = cluster(REMOVED)
    assert (on, off[1]) == ([True, True], False)


def test_report_shows_all_workers(cluster, tmp_path):
    refused, prefixes = cluster(REPORT)
    assert refused == "path must be a new file, got 'page.html': use force=True"
    assert prefixes == ["load"]
    for name in ("page.html", "now.html"):
        page = (tmp_path / name).read_text()
        assert page.count('"program":["dask worker","tcp://') == 2
        assert '"load/slot 1"' in page


def test_chosen_tasks_count_by_key(cluster, tmp_path):
    found, (tasks, _, _, live, *_), later = cluster(KEYS)
    assert len(found) == later == 8
    size = 8 * 100_000
    for number in range(4):
        prefix, count, bytes_live, peak, kept = found[f"('load', {number})"]
        assert (prefix, count, bytes_live) == ("load", 1, kept)
        assert kept == size + 8 * number <= peak <= kept + 1000
    keys = [each for each in found if each.startswith("double-it")]
    assert {found[each][0] for each in keys} == {"double-it"}
    assert all(1.9 < found[each][3] / size < 2.1 for each in keys)
    assert tasks == 5
    assert live >= 4 * size
    page = (tmp_path / "page.html").read_text()
    assert "load/('load', 3)" in page


def test_unusual_tasks_run(cluster):
    filled, (threads, processes), handler, live = cluster(UNUSUAL)
    assert filled == 1000
    assert threads == [True]
    assert processes == [0, 8000]
    assert handler == "memrt"
    assert live == 0


class Client:
    """Client of a cluster whose workers return given results."""

    def __init__(self, **results):
        self.results = results

    def sync(self, function, *arguments):
        """Run a coroutine function."""
        return asyncio.run(function(*arguments))

    async def run(self, function, *arguments, on_error):
        """Return the results by address."""
        assert on_error == "return"
        return {f"tcp://{name}": each for name, each in self.results[function.__name__].items()}


@pytest.mark.parametrize("version", ["0.0.1", ModuleNotFoundError("memrt")])
def test_workers_with_another_memrt_are_refused(version, tmp_path):
    client = Client(
        version={"a:1": memrt.__version__, "b:2": version},
        read_tasks={"a:1": ("1", []), "b:2": ModuleNotFoundError("memrt")},
        read_recording={"b:2": ModuleNotFoundError("memrt")},
    )
    got = "none" if isinstance(version, Exception) else version
    message = f"workers must have memrt {memrt.__version__} like the client, got {got} on tcp://b:2"
    for call in (
        lambda: memrt.dask.install(client),
        lambda: memrt.dask.stats(client),
        lambda: memrt.dask.report(client, tmp_path / "page.html"),
    ):
        with pytest.raises(RuntimeError, match=message):
            call()


@pytest.mark.parametrize("version", ["0.0.1", None])
def test_scheduler_with_another_memrt_gets_no_page(version):
    registered = []

    class Other(Client):
        async def run_on_scheduler(self, function, package):
            if version is None:
                raise importlib.metadata.PackageNotFoundError(package)
            return version

        async def register_plugin(self, plugin, name):
            registered.append(name)

    message = f"the scheduler must have memrt {memrt.__version__} like the client, got "
    with pytest.warns(RuntimeWarning, match=f"{message}{version or 'none'}: "):
        memrt.dask.install(Other(version={"a:1": memrt.__version__}))
    assert registered == ["memrt"]


def test_report_without_workers_is_refused(tmp_path):
    with pytest.raises(RuntimeError, match="a cluster must have workers for a report, got none"):
        memrt.dask.report(Client(read_recording={}), tmp_path / "page.html")
    failed = Client(version={"a": memrt.__version__}, read_tasks={"a": ValueError("other")})
    with pytest.raises(ValueError, match="other"):
        memrt.dask.stats(failed)


@pytest.mark.parametrize("force", [True, False])
def test_failed_write_of_a_report_keeps_the_file(tmp_path, monkeypatch, force):
    path = tmp_path / "page.html"
    calls._write(str(path), b"first", force)
    monkeypatch.setattr(os, "replace", lambda *paths: os.stat(tmp_path / "missing"))
    with pytest.raises(FileNotFoundError if force else FileExistsError):
        calls._write(str(path), b"second", force)
    assert [(each.name, each.read_bytes()) for each in tmp_path.iterdir()] == [
        ("page.html", b"first")
    ]


@pytest.mark.parametrize("known", [True, False])
def test_plugin_that_workers_refuse_is_removed(known):
    removed = []

    class Refusing(Client):
        async def register_plugin(self, plugin, name):
            raise RuntimeError("refused")

        async def unregister_worker_plugin(self, name):
            removed.append(name)
            if not known:
                raise ValueError(name)

    with pytest.raises(RuntimeError, match="refused"):
        memrt.dask.install(Refusing(version={"a:1": memrt.__version__}))
    assert removed == ["memrt"]


def test_function_of_another_library_stays(monkeypatch):
    import distributed.worker
    from memrt._dask import plugin

    own = distributed.worker._run_task
    plugin._put_hook(1)
    ours = distributed.worker._run_task
    monkeypatch.setattr(distributed.worker, "_run_task", lambda *arguments: ours(*arguments))
    theirs = distributed.worker._run_task
    plugin._remove_hook(1)
    assert distributed.worker._run_task is theirs
    plugin._put_hook(1)
    assert distributed.worker._run_task is theirs
    monkeypatch.setattr(distributed.worker, "_run_task", ours)
    plugin._remove_hook(1)
    assert distributed.worker._run_task is own


def test_preload_reaches_worker_of_the_command_line(tmp_path):
    code = """
import json, subprocess, sys
import memrt.dask
import numpy as np
from distributed import Client, LocalCluster
def total(size):
    return float(np.zeros(size).sum())
with LocalCluster(n_workers=0, dashboard_address=None) as cluster, Client(cluster) as client:
    command = [sys.executable, "-m", "distributed.cli.dask_worker", cluster.scheduler_address]
    worker = subprocess.Popen([*command, "--preload", "memrt.dask", "--no-dashboard"],
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        client.submit(total, 1000).result(timeout=100)
        print(memrt.dask.stats(client)["total"].tasks)
    finally:
        worker.terminate()
        worker.wait()
"""
    output = subprocess.check_output(
        [sys.executable, "-c", code], text=True, timeout=200, cwd=tmp_path
    )
    assert output.splitlines()[-1] == "1"


@pytest.mark.parametrize("by_key", [3, ["load", 3]])
def test_bad_choice_of_keys_is_refused(by_key):
    message = re.escape(f"by_key must be a prefix of tasks or several, got {by_key!r}: '*' is all")
    with pytest.raises(TypeError, match=message):
        memrt.dask.install(Client(), by_key=by_key)


def test_preload_reads_the_configuration_of_dask():
    code = "from memrt._dask.plugin import configured_plugin as read; print(vars(read()))"
    for options, expected in (
        ({}, {"limit": "auto", "record": False, "by_key": ()}),
        ({"LIMIT": "1 GiB", "RECORD": "True", "BY_KEY": "lo*"},
         {"limit": "1 GiB", "record": True, "by_key": ("lo*",)}),
        ({"BY_KEY": "['a', 'b']"}, {"limit": "auto", "record": False, "by_key": ("a", "b")}),
    ):  # fmt: skip
        added = {f"DASK_MEMRT__{name}": value for name, value in options.items()}
        output = subprocess.check_output(
            [sys.executable, "-c", code], text=True, timeout=60, env={**os.environ, **added}
        )
        assert output == f"{expected}\n"


def test_worker_without_an_import_of_memrt_unpickles_the_plugin():
    code = "import pickle; print(pickle.loads({!r}).limit)"
    text = code.format(pickle.dumps(plugin.MemrtPlugin("1 GiB")))
    output = subprocess.check_output([sys.executable, "-c", text], text=True, timeout=60)
    assert output == "1 GiB\n"


def test_unknown_version_of_distributed_is_refused(monkeypatch):
    import distributed.worker

    def other(function, key):
        """Have other parameters than the function of distributed."""

    monkeypatch.setattr(distributed.worker, "_run_task", other)
    with pytest.raises(RuntimeError, match="distributed must run tasks by"):
        plugin.MemrtPlugin(None).setup(object())
    assert not hasattr(distributed.worker._run_task, "__wrapped__")
    plugin._workers.clear()


def test_exception_and_threads_end_the_account():
    def fail():
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        tasks.run_task("erred-task", default_policy(), fail)
    start = threading.Barrier(4)

    def allocate():
        start.wait()
        np.zeros(1000)
        return {"op": "task-finished", "nbytes": 4000}

    arguments = ("erred-task", default_policy(), allocate)
    threads = [threading.Thread(target=tasks.run_task, args=arguments) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (row,) = [row for row in tasks.task_rows() if row["prefix"] == "erred-task"]
    assert (row["tasks"], row["errors"], row["live"], row["peak"]) == (5, 1, 0, 8000)
    assert memrt.dask.TaskStats(**row).ratio == 2.0
    assert len(memrt.scopes().children(memrt.scopes()["erred-task"])) in (4, 5)
    assert memrt.current_scope() is None
    assert memrt.handler_name() == "default_allocator"
    assert "5 tasks" in repr(memrt.dask.TaskStats(**row))


def test_handler_of_another_library_stays_outside_of_tasks():
    other = memrt.Policy(name="other")
    before = memrt._memrt.set_handler(other.handler)
    try:
        message = tasks.run_task(
            "handled-task", default_policy(), lambda: {"name": memrt.handler_name()}
        )
        assert (message["name"], memrt.handler_name()) == ("memrt", "memrt:other")
    finally:
        memrt._memrt.set_handler(before)


def test_tasks_use_the_policy_of_the_process(monkeypatch):
    monkeypatch.setattr(plugin, "_workers", {1})
    run = plugin._hooked(lambda *arguments: {"name": memrt.handler_name()})
    memrt.enable(memrt.Policy(name="own"))
    try:
        assert run(None, None, None, "policy-task-1")["name"] == "memrt:own"
    finally:
        memrt.disable()


def test_heartbeat_has_the_prefixes_with_most_live_bytes(monkeypatch):
    rows = [(f"task{number}", 1, number, 100 - number, True) for number in range(20)]
    monkeypatch.setattr(heartbeat, "prefix_rows", lambda: rows)
    found = [row[0] for row in heartbeat.Heartbeat().read([])["prefixes"]]
    assert found == [f"task{number}" for number in range(19, 3, -1)]


def test_failed_task_frees_its_variables():
    def fail():
        kept = memrt.zeros(1 << 20, "u1")
        try:
            raise MemoryError(len(kept))
        except MemoryError as error:
            raise MemoryError from error

    def run():
        try:
            fail()
        except MemoryError as error:
            return {"op": "task-erred", "actual_exception": error}

    message = tasks.run_task("freed-task", default_policy(), run)
    (row,) = [row for row in tasks.task_rows() if row["prefix"] == "freed-task"]
    assert (row["errors"], row["live"], row["peak"]) == (1, 0, 1 << 20)
    assert isinstance(message["actual_exception"], MemoryError)


@pytest.mark.parametrize("module", ["plugin", "recording", "dashboard", "tasks", "task_keys"])
def test_worker_imports_private_modules_first(module):
    command = [sys.executable, "-c", f"import memrt._dask.{module}"]
    subprocess.run(command, check=True, timeout=60)


def test_missing_dask_is_named(tmp_path):
    code = """
import sys
sys.modules["dask"] = None
import memrt.dask
try:
    memrt.dask.install(None)
except ImportError as error:
    print(error)
"""
    output = subprocess.check_output([sys.executable, "-c", code], text=True, timeout=60)
    assert output == "memrt.dask needs the missing package dask: pip install 'memrt[dask]'\n"
