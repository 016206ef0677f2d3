"""Instruments of OpenTelemetry, and the dashboard for Grafana."""

import json
import re
from pathlib import Path

import memrt
import pytest
from memrt._telemetry import metrics
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import Gauge, InMemoryMetricReader, Sum
from prometheus_client.openmetrics.parser import text_string_to_metric_families

DASHBOARD = Path(__file__).parents[3] / "examples" / "grafana" / "memrt.json"
EVERYTHING = {"policies": True, "scopes": True, "memory": True}


@pytest.fixture
def collect():
    """Return a function that registers instruments. The result collects metrics by name."""

    def register(**options):
        reader = InMemoryMetricReader()
        provider = MeterProvider([reader], shutdown_on_exit=False)
        memrt.telemetry.register_instruments(provider, **options)

        def read():
            (resource,) = reader.get_metrics_data().resource_metrics
            (scope,) = resource.scope_metrics
            assert (scope.scope.name, scope.scope.version) == ("memrt", memrt.__version__)
            return {metric.name: metric for metric in scope.metrics}

        return read

    return register


def value(found, name, **attributes):
    points = [point.value for point in found[name].data.data_points
              if dict(point.attributes) == attributes]  # fmt: skip
    (only,) = points
    return only


def prometheus_name(metric):
    """Return the name that an exporter for Prometheus gives an instrument."""
    name = metric.name.replace(".", "_") + ("_bytes" if metric.unit == "By" else "")
    return name + ("_total" if isinstance(metric.data, Sum) and metric.data.is_monotonic else "")


def test_instruments_have_the_values_of_the_statistics(collect):
    with memrt.scope("inner"):
        table = memrt.zeros(1000)
    found = collect(scopes=True)()
    now = memrt.stats()
    assert value(found, "memrt.live") == now.live
    assert value(found, "memrt.peak") == now.peak
    assert value(found, "memrt.allocated") == now.total
    assert value(found, "memrt.blocks_freed") == now.free
    assert value(found, "memrt.policy.live", policy="default", index="0") == now.live
    assert value(found, "memrt.scope.live", scope="inner") == table.nbytes


def test_instruments_are_the_metrics_of_the_text(libc_malloc, collect):
    with memrt.scope("inner"):
        table = memrt.zeros(1000)
    found = collect(**EVERYTHING)().values()
    text = memrt.telemetry.metrics(**EVERYTHING)
    samples = {
        sample.name: family
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if family.type != "info"
    }
    assert {prometheus_name(metric) for metric in found} == set(samples)
    for metric in found:
        family = samples[prometheus_name(metric)]
        assert metric.description == family.documentation
        assert (metric.unit == "By") == (family.unit == "bytes")
        assert metric.unit in ("By", "{block}", "{meminfo}", "{request}", "{reference}")
        is_counter = isinstance(metric.data, Sum) and metric.data.is_monotonic
        assert is_counter == (family.type == "counter")
        is_gauge = isinstance(metric.data, Gauge)
        assert is_gauge == bool(re.search("peak|error", metric.name))
    del table


def test_levels_are_chosen_by_options(collect):
    names = set(collect(policies=False)())
    assert {name.count(".") for name in names} == {1}
    assert "memrt.resident" not in names


def test_each_collection_reads_the_statistics_once(collect, monkeypatch):
    reads, stats = [], metrics.stats
    read = collect(policies=False)
    monkeypatch.setattr(metrics, "stats", lambda *of: reads.append(1) or stats(*of))
    read()
    first = memrt.zeros(1000)
    found = read()
    assert len(reads) == 2
    assert value(found, "memrt.live") == memrt.stats().live
    del first


def test_two_readers_get_current_values(collect):
    one, other = collect(policies=False), collect(policies=False)
    for n in (1000, 2000):
        table = memrt.zeros(n)
        live = memrt.stats().live
        assert (value(one(), "memrt.live"), value(other(), "memrt.live")) == (live, live)
    del table


def test_missing_opentelemetry_names_the_extra(run_python):
    result = run_python(
        "import sys; sys.modules['opentelemetry'] = None; import memrt\n"
        "try: memrt.telemetry.register_instruments()\n"
        "except ImportError as error: print(error)\n"
    )
    assert result.stdout == (
        "memrt.telemetry.register_instruments() needs the missing package opentelemetry: "
        "pip install 'memrt[report]'\n"
    )


def test_queries_of_the_dashboard_name_existing_metrics():
    dashboard = json.loads(DASHBOARD.read_text())
    text = memrt.telemetry.metrics(**EVERYTHING)
    existing = {line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")}
    existing |= {f"{name}_total" for name in existing if f"# TYPE {name} counter" in text}
    panels = dashboard["panels"]
    variables = dashboard["templating"]["list"]
    queries = [target["expr"] for panel in panels for target in panel["targets"]]
    queries += [each["definition"] for each in variables if each["type"] == "query"]
    named = {name for query in queries for name in re.findall(r"memrt_\w+", query)}
    assert len(named) > 10
    assert named <= existing
    rated = re.findall(r"(?:rate|increase)\((memrt_\w+)", " ".join(queries))
    assert all(name.endswith("_total") for name in rated)
    known = {each["name"] for each in variables} | {"__rate_interval"}
    assert set(re.findall(r"\$\{?(\w+)", json.dumps(dashboard))) - {"__all"} == known
    assert len({panel["id"] for panel in panels}) == len(panels)
