"""Metrics for Prometheus and compatible readers, as text and from a registry."""

from __future__ import annotations

import dataclasses
import re

import memrt
import numpy as np
import pytest
from memrt._telemetry import metrics
from prometheus_client import CollectorRegistry
from prometheus_client.openmetrics.exposition import generate_latest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

HOSTILE = 'a "name"\\with\nall of it, é'


def parsed(text: str) -> dict:
    """Return the families of an OpenMetrics text by name; names must be unique."""
    families = list(text_string_to_metric_families(text))
    assert len({family.name for family in families}) == len(families)
    return {family.name: family for family in families}


def value(families: dict, name: str, **labels: str) -> float:
    samples = [sample for sample in families[name].samples if sample.labels == labels]
    assert len(samples) == 1, f"{len(samples)} samples of {name} {labels}"
    return samples[0].value


def test_metrics_equal_the_statistics():
    array = memrt.empty(100_000, "u1")
    families = parsed(memrt.telemetry.metrics())
    stats = memrt.stats()
    assert value(families, "memrt_live_bytes") == stats.live >= array.nbytes
    assert value(families, "memrt_peak_bytes") == stats.peak
    assert value(families, "memrt_allocated_bytes") == stats.total
    assert value(families, "memrt_blocks_allocated") == stats.alloc
    assert value(families, "memrt_blocks_freed") == stats.free
    assert value(families, "memrt_build", version=memrt.__version__) == 1


METRIC_OF_FIELD = {
    "alloc": "blocks_allocated",
    "free": "blocks_freed",
    "mi_alloc": "meminfos_allocated",
    "mi_free": "meminfos_freed",
    "realloc": "blocks_resized",
    "failed": "requests_refused",
    "live": "live_bytes",
    "peak": "peak_bytes",
    "peak_error": "peak_error_bytes",
    "total": "allocated_bytes",
    "adopted": "adopted_bytes",
    "cached": "cached_bytes",
    "reserved": "reserved_bytes",
    "inherited": "inherited_bytes",
    "inherited_blocks": "inherited_blocks",
    "inherited_error": "inherited_error_bytes",
    "exported": "exported_references",
}


def distinct_stats(base: int) -> memrt.types.Stats:
    """Return statistics in which each field has another value."""
    return memrt.types.Stats(*range(base, base + len(METRIC_OF_FIELD)))


def test_each_process_metric_has_the_value_of_its_field(monkeypatch):
    expected = distinct_stats(1000).to_dict()
    monkeypatch.setattr("memrt._telemetry.metrics.stats", lambda policy=None: distinct_stats(1000))
    families = parsed(memrt.telemetry.metrics(policies=False))
    found = {field: value(families, f"memrt_{name}") for field, name in METRIC_OF_FIELD.items()}
    assert found == expected


def test_each_policy_metric_has_the_value_of_its_field(monkeypatch):
    policy = memrt.Policy(name="metered")
    figures = {None: distinct_stats(1000), "metered": distinct_stats(2000)}
    monkeypatch.setattr(
        "memrt._telemetry.metrics.stats",
        lambda policy=None: figures.get(policy and policy.name, figures[None]),
    )
    families = parsed(memrt.telemetry.metrics())
    labels = {"policy": "metered", "index": str(policy._index)}
    found = {
        field: value(families, f"memrt_policy_{name}", **labels)
        for field, name in METRIC_OF_FIELD.items()
    }
    assert found == distinct_stats(2000).to_dict()


def test_each_scope_metric_has_the_value_of_its_field(monkeypatch):
    with memrt.scope("metered"):
        pass
    monkeypatch.setattr(memrt.types.Scope, "stats", lambda self: distinct_stats(3000))
    families = parsed(memrt.telemetry.metrics(scopes=True))
    expected = {k: v for k, v in distinct_stats(3000).to_dict().items() if k != "cached"}
    found = {
        field: value(families, f"memrt_scope_{METRIC_OF_FIELD[field]}", scope="metered")
        for field in expected
    }
    assert found == expected
    assert "memrt_scope_cached_bytes" not in families


def test_metric_names_and_types_match_the_fields(monkeypatch):
    families = parsed(memrt.telemetry.metrics(policies=False))
    assert set(families) == {"memrt_build", *(f"memrt_{name}" for name in METRIC_OF_FIELD.values())}
    counters = {"alloc", "free", "mi_alloc", "mi_free", "realloc", "failed", "total"}
    for field, name in METRIC_OF_FIELD.items():
        assert families[f"memrt_{name}"].type == ("counter" if field in counters else "gauge")


HELP_OF_FIELD = {
    "alloc": "^blocks allocated",
    "free": "^blocks freed",
    "realloc": "^blocks resized",
    "mi_alloc": "^meminfos created",
    "mi_free": "^meminfos destroyed",
    "failed": "^requests refused",
    "total": "^bytes allocated",
    "live": "^(bytes in use|live bytes)(?!.*(fork|before|beyond))",
    "peak": "^most bytes in use",
    "peak_error": "peak",
    "adopted": "adopted",
    "cached": "^bytes .*(reuse|cache)",
    "reserved": "^bytes .*from allocators",
    "inherited": "^live bytes .*fork",
    "inherited_blocks": "^live blocks",
    "inherited_error": "^further live bytes",
    "exported": "references",
}
"""Words that only the help text of the field has."""
COUNTS = {"alloc", "free", "realloc", "mi_alloc", "mi_free", "failed"} | {
    "inherited_blocks",
    "exported",
}
"""Fields without a unit. All other fields count bytes."""


def test_help_and_unit_of_each_metric_match_its_field():
    families = parsed(memrt.telemetry.metrics(policies=False))
    helps = {name: families[f"memrt_{name}"].documentation for name in METRIC_OF_FIELD.values()}
    assert len(set(helps.values())) == len(helps)
    for field, name in METRIC_OF_FIELD.items():
        pattern = re.compile(HELP_OF_FIELD[field], re.IGNORECASE)
        assert re.search(pattern, helps[name]), field
        assert helps[name].endswith(", by the process")
        assert families[f"memrt_{name}"].unit == ("" if field in COUNTS else "bytes"), field


def test_metric_count_equals_field_count_of_statistics():
    names = {
        name for name in parsed(memrt.telemetry.metrics(policies=False)) if name != "memrt_build"
    }
    assert len(names) == len(dataclasses.fields(memrt.types.Stats))


def test_metric_names_types_and_units_follow_openmetrics():
    for name, family in parsed(memrt.telemetry.metrics(scopes=True)).items():
        assert family.documentation
        assert family.type in {"counter", "gauge", "info"}
        assert (family.unit == "bytes") == name.endswith("_bytes")
        suffixes = {"counter": "_total", "info": "_info", "gauge": ""}
        for sample in family.samples:
            assert sample.name == name + suffixes[family.type]


def test_counter_includes_freed_bytes_and_gauge_does_not():
    before = parsed(memrt.telemetry.metrics())
    memrt.empty(5000, "u1")
    after = parsed(memrt.telemetry.metrics())
    grown = value(after, "memrt_allocated_bytes") - value(before, "memrt_allocated_bytes")
    assert grown == 5000
    assert value(after, "memrt_live_bytes") == value(before, "memrt_live_bytes")


def test_policies_with_equal_names_have_different_index_labels():
    first, second = memrt.Policy(name="twin"), memrt.Policy(name="twin")
    with first:
        kept = np.ones(1000, "u1")
    families = parsed(memrt.telemetry.metrics())
    samples = families["memrt_policy_live_bytes"].samples
    values = [s.value for s in samples if s.labels["policy"] == "twin"]
    assert sorted(values) == [0, kept.nbytes]
    assert len({s.labels["index"] for s in samples}) == len(samples)
    del second


def test_policies_false_omits_policy_metrics():
    assert not any(
        name.startswith("memrt_policy_") for name in parsed(memrt.telemetry.metrics(policies=False))
    )


def test_scope_metrics_need_scopes_true():
    with memrt.scope("outer"), memrt.scope("inner"):
        kept = memrt.empty(700, "u1")
    assert not any(name.startswith("memrt_scope_") for name in parsed(memrt.telemetry.metrics()))
    families = parsed(memrt.telemetry.metrics(scopes=True))
    assert value(families, "memrt_scope_live_bytes", scope="outer/inner") == kept.nbytes
    assert value(families, "memrt_scope_live_bytes", scope="outer") == kept.nbytes


def test_slash_in_scope_name_is_escaped():
    with memrt.scope("p/q"):
        pass
    with memrt.scope("p"), memrt.scope("q"):
        pass
    scopes = [
        s.labels["scope"]
        for s in parsed(memrt.telemetry.metrics(scopes=True))["memrt_scope_live_bytes"].samples
    ]
    assert {"p\\/q", "p/q"} <= set(scopes)
    assert len(set(scopes)) == len(scopes)


def test_names_with_quotes_and_newlines_are_parsed_back():
    policy = memrt.Policy(name=HOSTILE)
    with memrt.scope(HOSTILE):
        pass
    families = parsed(memrt.telemetry.metrics(scopes=True))
    assert HOSTILE in {s.labels["policy"] for s in families["memrt_policy_live_bytes"].samples}
    written = HOSTILE.replace("\\", "\\\\")
    assert written in {s.labels["scope"] for s in families["memrt_scope_live_bytes"].samples}
    del policy


def test_registry_exposes_the_same_metrics_as_text():
    registry = CollectorRegistry(auto_describe=True)
    registry.register(memrt.telemetry.metrics_collector(scopes=True))
    kept = memrt.empty(4321, "u1")
    exposed = parsed(generate_latest(registry).decode())
    own = parsed(memrt.telemetry.metrics(scopes=True))
    assert exposed.keys() == own.keys()
    assert value(exposed, "memrt_live_bytes") == memrt.stats().live >= kept.nbytes
    for name, family in own.items():
        assert (exposed[name].type, exposed[name].unit) == (family.type, family.unit)
        assert exposed[name].documentation == family.documentation


def test_second_collector_in_a_registry_is_refused():
    registry = CollectorRegistry()
    registry.register(memrt.telemetry.metrics_collector())
    with pytest.raises(ValueError, match="Duplicated"):
        registry.register(memrt.telemetry.metrics_collector())


WITHOUT = """
import sys
sys.modules["prometheus_client"] = None
import importlib.util
importlib.util.find_spec = lambda name: None
import memrt
print(memrt.telemetry.metrics().splitlines()[-1])
try:
    memrt.telemetry.metrics_collector()
except ImportError as error:
    print(error)
"""


def test_collector_without_prometheus_client_gives_install_hint(run_python):
    shown = run_python(WITHOUT).stdout.splitlines()
    assert shown == [
        "# EOF",
        "memrt.telemetry.metrics_collector() needs the missing package prometheus_client: "
        "pip install 'memrt[report]'",
    ]


def test_metrics_text_does_not_import_prometheus_client(run_python):
    code = "import sys, memrt; memrt.telemetry.metrics(); print('prometheus_client' in sys.modules)"
    assert run_python(code).stdout == "False\n"


def test_memory_metrics_need_memory_true(libc_malloc, monkeypatch):
    assert "part=" not in memrt.telemetry.metrics(scopes=True)
    account = memrt.debug.process_memory()
    unknown = memrt.types.MemoryPart(None, None, "why")
    account = dataclasses.replace(account, malloc_used=unknown)
    monkeypatch.setattr(metrics, "process_memory", lambda: account)
    families = parsed(memrt.telemetry.metrics(policies=False, memory=True))
    for field in ("resident", "mapped"):
        samples = families[f"memrt_{field}_bytes"].samples
        shown = {sample.labels["part"]: sample.value for sample in samples}
        parts = {name: getattr(part, field) for name, part in account.parts().items()}
        del parts["malloc_used"]  # not known
        assert shown == parts
    assert value(families, "memrt_peak_resident_bytes") == account.peak_resident
    assert value(families, "memrt_swapped_bytes") == account.swapped
    assert value(families, "memrt_huge_asked_bytes") == account.huge_asked
    registry = CollectorRegistry()
    registry.register(memrt.telemetry.metrics_collector(memory=True))
    assert 'memrt_resident_bytes{part="code"}' in generate_latest(registry).decode()


@pytest.mark.parametrize("got", [6 << 20, 0, None])
def test_metrics_have_the_huge_pages_asked_and_had(monkeypatch, got):
    account = memrt.debug.process_memory()
    account = dataclasses.replace(account, huge_asked=8 << 20, huge_got=got)
    monkeypatch.setattr(metrics, "process_memory", lambda: account)
    families = parsed(memrt.telemetry.metrics(policies=False, memory=True))
    assert value(families, "memrt_huge_asked_bytes") == 8 << 20
    found = [sample.value for sample in families["memrt_huge_got_bytes"].samples]
    assert found == ([] if got is None else [got])
    assert {families[f"memrt_huge_{name}_bytes"].type for name in ("asked", "got")} == {"gauge"}
