"""Metrics: what Prometheus and its like read, as text and from a registry."""

from __future__ import annotations

import dataclasses

import memrt
import numpy as np
import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.openmetrics.exposition import generate_latest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

HOSTILE = 'a "name"\\with\nall of it, é'


def parsed(text: str) -> dict:
    """The families of a text that keeps to OpenMetrics, by name."""
    families = list(text_string_to_metric_families(text))
    assert len({family.name for family in families}) == len(families)
    return {family.name: family for family in families}


def value(families: dict, name: str, **labels: str) -> float:
    samples = [sample for sample in families[name].samples if sample.labels == labels]
    assert len(samples) == 1, f"{len(samples)} samples of {name} {labels}"
    return samples[0].value


def test_figures_are_those_of_the_statistics():
    array = memrt.empty(100_000, "u1")
    families = parsed(memrt.metrics())
    stats = memrt.stats()
    assert value(families, "memrt_live_bytes") == stats.live >= array.nbytes
    assert value(families, "memrt_peak_bytes") == stats.peak
    assert value(families, "memrt_allocated_bytes") == stats.total
    assert value(families, "memrt_blocks_allocated") == stats.alloc
    assert value(families, "memrt_blocks_freed") == stats.free
    assert value(families, "memrt_build", version=memrt.__version__) == 1


def test_every_field_of_the_statistics_is_a_metric():
    names = {name for name in parsed(memrt.metrics(policies=False)) if name != "memrt_build"}
    assert len(names) == len(dataclasses.fields(memrt.Stats))


def test_names_types_and_units_are_as_openmetrics_has_them():
    for name, family in parsed(memrt.metrics(scopes=True)).items():
        assert family.documentation
        assert family.type in {"counter", "gauge", "info"}
        assert (family.unit == "bytes") == name.endswith("_bytes")
        suffixes = {"counter": "_total", "info": "_info", "gauge": ""}
        for sample in family.samples:
            assert sample.name == name + suffixes[family.type]


def test_a_counter_grows_and_a_gauge_falls():
    before = parsed(memrt.metrics())
    memrt.empty(5000, "u1")
    after = parsed(memrt.metrics())
    grown = value(after, "memrt_allocated_bytes") - value(before, "memrt_allocated_bytes")
    assert grown == 5000
    assert value(after, "memrt_live_bytes") == value(before, "memrt_live_bytes")


def test_policies_of_one_name_are_told_apart():
    first, second = memrt.Policy(name="twin"), memrt.Policy(name="twin")
    with first:
        kept = np.ones(1000, "u1")
    families = parsed(memrt.metrics())
    samples = families["memrt_policy_live_bytes"].samples
    values = [s.value for s in samples if s.labels["policy"] == "twin"]
    assert sorted(values) == [0, kept.nbytes]
    assert len({s.labels["index"] for s in samples}) == len(samples)
    del second


def test_policies_are_left_out_where_nobody_asks_for_them():
    assert not any(
        name.startswith("memrt_policy_") for name in parsed(memrt.metrics(policies=False))
    )


def test_scopes_come_only_where_they_are_asked_for():
    with memrt.scope("outer"), memrt.scope("inner"):
        kept = memrt.empty(700, "u1")
    assert not any(name.startswith("memrt_scope_") for name in parsed(memrt.metrics()))
    families = parsed(memrt.metrics(scopes=True))
    assert value(families, "memrt_scope_live_bytes", scope="outer/inner") == kept.nbytes
    assert value(families, "memrt_scope_live_bytes", scope="outer") == kept.nbytes


def test_slashes_in_names_make_no_two_scopes_one():
    with memrt.scope("p/q"):
        pass
    with memrt.scope("p"), memrt.scope("q"):
        pass
    scopes = [
        s.labels["scope"]
        for s in parsed(memrt.metrics(scopes=True))["memrt_scope_live_bytes"].samples
    ]
    assert {"p\\/q", "p/q"} <= set(scopes)
    assert len(set(scopes)) == len(scopes)


def test_names_with_quotes_and_lines_are_read_back_as_they_are():
    policy = memrt.Policy(name=HOSTILE)
    with memrt.scope(HOSTILE):
        pass
    families = parsed(memrt.metrics(scopes=True))
    assert HOSTILE in {s.labels["policy"] for s in families["memrt_policy_live_bytes"].samples}
    written = HOSTILE.replace("\\", "\\\\")
    assert written in {s.labels["scope"] for s in families["memrt_scope_live_bytes"].samples}
    del policy


def test_a_registry_exposes_the_same():
    registry = CollectorRegistry(auto_describe=True)
    registry.register(memrt.metrics_collector(scopes=True))
    kept = memrt.empty(4321, "u1")
    exposed = parsed(generate_latest(registry).decode())
    own = parsed(memrt.metrics(scopes=True))
    assert exposed.keys() == own.keys()
    assert value(exposed, "memrt_live_bytes") == memrt.stats().live >= kept.nbytes
    for name, family in own.items():
        assert (exposed[name].type, exposed[name].unit) == (family.type, family.unit)
        assert exposed[name].documentation == family.documentation


def test_a_second_collector_in_one_registry_is_refused():
    registry = CollectorRegistry()
    registry.register(memrt.metrics_collector())
    with pytest.raises(ValueError, match="Duplicated"):
        registry.register(memrt.metrics_collector())


WITHOUT = """
import sys
sys.modules["prometheus_client"] = None
import importlib.util
importlib.util.find_spec = lambda name: None
import memrt
print(memrt.metrics().splitlines()[-1])
try:
    memrt.metrics_collector()
except ImportError as error:
    print(error)
"""


def test_without_the_library_the_collector_says_what_to_install(run_python):
    shown = run_python(WITHOUT).stdout.splitlines()
    assert shown == [
        "# EOF",
        "memrt.metrics_collector() needs prometheus_client, which is not installed: "
        "pip install 'memrt[report]'",
    ]


def test_importing_memrt_does_not_import_the_library(run_python):
    code = "import sys, memrt; memrt.metrics(); print('prometheus_client' in sys.modules)"
    assert run_python(code).stdout == "False\n"
