"""Times of slow paths and system calls.

Each measurement runs in a process of its own, because its times stay in the statistics.
"""

import json

import memrt
import pytest
from memrt._stats.latency import BOUNDS, count_below

PROGRAM = """
import json, memrt
memrt.set_option("latency", True)
memrt.zeros(31 << 20, "u1")
memrt.release_unused()
memrt.set_option("latency", False)
before = memrt.debug.latency()
kept = memrt.zeros(33 << 20, "u1")
print(json.dumps({
    "times": {path: time.to_dict() for path, time in memrt.debug.latency().items()},
    "unchanged": memrt.debug.latency() == before,
    "document": json.loads(memrt.telemetry.stats_json()),
    "metrics": memrt.telemetry.metrics(policies=False).splitlines(),
}))
"""


@pytest.fixture
def measured(run_python):
    """Return the figures of a program that measures the times of a large array."""
    return json.loads(run_python(PROGRAM, env={"MEMRT_LATENCY": "0"}).stdout)


def test_sum_of_bins_is_the_number_of_runs(measured):
    assert measured["times"]["map"]["count"] >= 1
    assert measured["unchanged"]  # the option is off
    for path in measured["times"].values():
        bins = {int(key): runs for key, runs in path["bins"].items()}
        assert sum(bins.values()) == path["count"] > 0
        assert all(key.bit_count() == 1 for key in bins)
        assert path["nanoseconds"] >= sum(runs * (key // 2) for key, runs in bins.items())


def test_json_has_the_times(measured):
    assert measured["document"]["latency"] == measured["times"]
    jsonschema = pytest.importorskip("jsonschema")
    jsonschema.validate(measured["document"], memrt.telemetry.stats_schema())


def test_metrics_have_a_cumulative_histogram(measured):
    lines = measured["metrics"]
    assert "# TYPE memrt_path_seconds histogram" in lines
    ours = [line for line in lines if line.startswith("memrt_path_seconds") and '"map"' in line]
    buckets = [int(line.split()[-1]) for line in ours if "_bucket" in line]
    assert buckets == sorted(buckets)
    assert len(buckets) == len(BOUNDS) + 1
    assert buckets[-1] == measured["times"]["map"]["count"]
    assert f'memrt_path_seconds_count{{path="map"}} {buckets[-1]}' in ours


def test_runs_at_a_bound_count_below_the_next_bucket():
    latency = memrt.types.Latency(6, 0, {1: 1, 256: 1, 512: 1, 1024: 1, 1 << 34: 1, 1 << 40: 1})
    below = count_below(latency)
    assert below[:3] == [2, 4, 4]
    assert below[-1] == 5


def test_collector_passes_the_histogram_on(run_python):
    pytest.importorskip("prometheus_client")
    code = """
import memrt
from prometheus_client import CollectorRegistry
from prometheus_client.openmetrics.exposition import generate_latest
kept = memrt.zeros(32 << 20, "u1")
registry = CollectorRegistry()
registry.register(memrt.telemetry.metrics_collector())
print(generate_latest(registry).decode().count("memrt_path_seconds_count"))
print(len(memrt.debug.latency()))
"""
    lines = run_python(code, env={"MEMRT_LATENCY": "1"}).stdout.split()
    assert lines[0] == lines[1] != "0"


def test_process_without_the_option_has_no_times(run_python):
    code = "import memrt; print(memrt.debug.latency(), 'latency' in memrt.telemetry.stats_json())"
    assert run_python(code, env={"MEMRT_LATENCY": "0"}).stdout == "{} False\n"
