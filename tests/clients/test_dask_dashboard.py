"""Figures of a Dask cluster: page /memrt, `memrt top --dask`, Prometheus, performance report."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from memrt._dask import dashboard, task_metrics
from memrt._dask.cluster_figures import sum_up
from memrt._dask.heartbeat import Heartbeat
from memrt._dask.task_metrics import TaskMetrics
from memrt._dask.tasks import run_task
from memrt._policy.live_policies import default_policy
from memrt.commands.live_view.dask_view import text

PROGRAM = """\
import json, logging, subprocess, sys, time, urllib.request
import memrt.dask
import numpy as np
from bokeh.client import pull_session
from distributed import Client, LocalCluster, wait
def load(size):
    return np.ones(size)
def leak(size):
    import builtins
    builtins.kept = np.ones(size)
    return 1
def read(port, path):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/{path}", timeout=60) as answer:
        return answer.read().decode()
def shown_data(session):
    return [model.data for model in session.document.models if hasattr(model, "data")]
def times(session):
    return [list(data["time"]) for data in shown_data(session) if "time" in data]
def top(*options):
    command = [sys.executable, "-m", "memrt", "top", *options]
    return subprocess.check_output(command, text=True, timeout=100)
if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    with LocalCluster(n_workers=1, memory_limit="1 GiB", dashboard_address=":0",
                      worker_dashboard_address=":0") as cluster, Client(cluster) as client:
        memrt.dask.install(client, record=True)
        memrt.dask.install(client, record=True, by_key=["le*"])
        with memrt.dask.performance_report("dask.html"):
            tables = client.map(load, [500_000, 500_001])
            wait([*tables, client.submit(leak, 250_000)])
        address, port = cluster.scheduler_address, cluster.scheduler.http_server.port
        while True:
            document = json.loads(top("--json", "--dask", address))
            rows = {row["prefix"]: row for row in document["prefixes"]}
            tasks = sum(row["tasks"] for row in rows.values())
            if tasks == 3 and rows["leak"]["outlived"] and not rows["load"]["outlived"]:
                break  # a heartbeat after the end of all tasks, with their results stored
            time.sleep(0.1)
        page = f"http://127.0.0.1:{port}/memrt"
        session = pull_session(url=page)
        columns = sorted({name for data in shown_data(session) for name in data})
        for _ in range(300):  # the page is updated each second
            if times(pull_session(url=page, session_id=session.id)) != times(session):
                break
            time.sleep(0.1)
        else:
            sys.exit("the page was not updated")
        session.close()
        (worker,) = client.scheduler_info()["workers"].values()
        lines = read(worker["services"]["dashboard"], "metrics").splitlines()
        print(json.dumps({
            "rows": rows, "columns": columns, "text": top("--dask", address),
            "keys": document["keys"],
            "places": [each["place"] for each in document["sites"]],
            "link": "memrt" in read(port, "status"), "title": "Bokeh" in read(port, "memrt"),
            "metrics": [line for line in lines if line.startswith("memrt_task_live")],
        }))
"""
FIGURES = {
    "process": "1", "live": 300, "cached": 20, "other": 1000, "limit": 2048,
    "prefixes": [["sum", 2, 200, 150, 0], ["load", 1, 100, 100, 30]], "sites": [["a.py:1", 300]],
    "keys": [["sum-1", 1, 100, 150, 50]],
}  # fmt: skip
METRICS = {
    "tcp://a": {"memrt": FIGURES},
    "tcp://b": {"memrt": FIGURES},  # another worker of the same process
    "tcp://c": {
        "memrt": {
            **FIGURES,
            "process": "2",
            "live": 600,
            "limit": None,
            "keys": [["sum-1", 1, 0, 160, 40], ["sum-2", 1, 0, 155, 50]],
        }
    },
    "tcp://d": {},
}


def test_page_top_metrics_and_report_show_the_cluster(tmp_path):
    script = tmp_path / "program.py"
    script.write_text(PROGRAM)
    output = subprocess.check_output(
        [sys.executable, script], text=True, timeout=250, cwd=tmp_path, stderr=subprocess.DEVNULL,
        env={**os.environ, "DASK_TEMPORARY_DIRECTORY": str(tmp_path),
             "DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED": "False"},
    )  # fmt: skip
    found = json.loads(output.splitlines()[-1])
    load, leak = found["rows"]["load"], found["rows"]["leak"]
    assert (load["tasks"], load["live"], load["outlived"]) == (2, 8_000_008, 0)
    assert (leak["tasks"], leak["live"], leak["outlived"]) == (1, 2_000_000, 2_000_000)
    ((key, *figures),) = [each.values() for each in found["keys"]]
    assert (key[:5], figures[:2]) == ("leak-", [1, 2_000_000])
    columns = {"time", "load ", "leak ", "outlived", "key", "result", "worker", "limit", "site"}
    assert columns <= {*found["columns"]}
    assert "Live bytes by prefix\nprefix" in found["text"]
    assert "load at <dynamic-code>:7" in found["places"]
    assert (found["link"], found["title"]) == (True, True)
    assert any('prefix="load",worker="tcp://' in line for line in found["metrics"])
    assert "memrt.dask.performance_report" in (tmp_path / "dask.html").read_text()
    assert '"program":["dask worker","tcp://' in (tmp_path / "dask-memrt.html").read_text()


def test_cluster_counts_each_process_once():
    cluster = sum_up(METRICS)
    assert sorted(cluster.workers) == ["tcp://a", "tcp://b", "tcp://c"]
    assert cluster.without == 1
    assert cluster.prefixes == [["sum", 4, 400, 150, 0], ["load", 2, 200, 100, 60]]
    assert cluster.keys == [["sum-1", 2, 100, 160, 40], ["sum-2", 1, 0, 155, 50]]
    assert cluster.sites == [["a.py:1", 600]]


def test_text_shows_workers_prefixes_and_sites():
    lines = text(sum_up(METRICS)).splitlines()
    assert lines[0] == "3 workers; 1 without memrt: run memrt.dask.install(client)"
    assert lines[2].split() == ["tcp://c", "600", "B", "20", "B", "1000", "B", "none"]
    assert lines[-1].split() == ["a.py:1", "600", "B"]
    assert lines[lines.index("Highest peaks by key") + 2].split()[:2] == ["sum-1", "2"]
    assert text(sum_up({})) == "0 workers"


def test_page_sums_small_prefixes():
    samples = [(float(i), {f"p{n}": n for n in range(10)}) for i in range(2)]
    columns = dashboard.time_columns(samples)
    assert columns["time"] == [0.0, 1000.0]
    assert columns["p9 "] == [9, 9]
    assert columns["other prefixes"] == [1, 1]
    assert len(columns) == 1 + dashboard.MOST_SERIES + 1
    assert dashboard.time_columns([]) == {"time": []}
    workers = dashboard.worker_columns(sum_up(METRICS))
    assert (workers["worker"][0], workers["limit"]) == ("tcp://c", [None, 2048, 2048])


def test_scheduler_without_dashboard_has_no_page():
    class Application:
        applications = ()

    class Scheduler:
        http_application = Application()

    dashboard.add_page(Scheduler())
    assert Application.applications == ()
    dashboard.add_page(object())


def test_slow_readings_are_reused(monkeypatch):
    heartbeat = Heartbeat()
    first = heartbeat.read([])
    heartbeat._next = float("inf")
    assert heartbeat.read([]) is first
    heartbeat._next = 0.0
    assert heartbeat.read([]) is not first


def test_metrics_end_with_the_worker():
    run_task("measured-task", default_policy(), lambda: {"op": "task-finished", "nbytes": 0})
    assert list(TaskMetrics(lambda: None).collect()) == []
    found = {each.name: each for each in TaskMetrics(lambda: "tcp://a").collect()}
    labels = [each.labels for each in found["memrt_task_tasks"].samples]
    assert {"worker": "tcp://a", "prefix": "measured-task"} in labels
    assert "memrt_worker_live_bytes" in found


def test_metrics_need_no_prometheus(monkeypatch):
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    monkeypatch.setattr(task_metrics, "_registered", False)
    task_metrics.register(lambda: None)
    assert not task_metrics._registered


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["4711"], "--dask must be without pid: it shows a whole cluster"),
        (["--record", "a.csv"], "--dask must be without record: it shows a whole cluster"),
        ([], "--dask must be the address of a scheduler, got 'nonsense://a:1'"),
    ],
)
def test_top_refuses_bad_options(options, message):
    command = [sys.executable, "-m", "memrt", "top", "--dask", "nonsense://a:1", *options]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    assert ended.returncode == 2
    assert message in ended.stderr
