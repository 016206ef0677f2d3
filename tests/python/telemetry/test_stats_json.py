"""The JSON form of the statistics matches the published schema."""

from __future__ import annotations

import copy
import dataclasses
import json
import os
import time

import jsonschema
import memrt
import numpy as np
import pytest
from memrt._telemetry import stats_json

VALIDATOR = jsonschema.Draft202012Validator(memrt.telemetry.stats_schema())


def document(**options: int) -> dict:
    read = json.loads(memrt.telemetry.stats_json(**options))
    VALIDATOR.validate(read)
    return read


def test_schema_is_valid_and_has_version_1():
    jsonschema.Draft202012Validator.check_schema(memrt.telemetry.stats_schema())
    assert memrt.telemetry.stats_schema()["$id"] == "urn:memrt:stats:1"


def test_document_equals_the_statistics():
    kept = memrt.empty(3000, "u1")
    read = document()
    assert read["process"] == memrt.stats().to_dict()
    assert read["process"]["live"] >= kept.nbytes
    assert read["pid"] == os.getpid()
    assert read["memrt"] == memrt.__version__
    assert abs(read["time"] - time.time()) < 60


def test_document_has_the_statistics_of_policies_and_scopes():
    policy = memrt.Policy(128, 'a "policy"', decay=7)
    with policy, memrt.scope("out/side"), memrt.scope("in"):
        kept = np.ones(1000, "u1")
    read = document()
    mine = [found for found in read["policies"] if found["name"] == policy.name]
    assert [(found["alignment"], found["options"]) for found in mine] == [
        (128, {"MEMRT_DECAY": "7"})
    ]
    assert mine[0]["stats"]["live"] == kept.nbytes
    inside = [found for found in read["scopes"] if found["path"] == ["out/side", "in"]]
    assert [found["stats"]["live"] for found in inside] == [kept.nbytes]


def test_schema_properties_match_the_statistics_fields():
    fields = {field.name for field in dataclasses.fields(memrt.types.Stats)}
    assert memrt.telemetry.stats_schema()["$defs"]["stats"]["properties"].keys() == fields
    members = document(memory=True).keys() | {"latency"}  # only after a measurement
    assert set(memrt.telemetry.stats_schema()["properties"]) == members


def test_schema_descriptions_match_the_field_meanings():
    from memrt.commands.stats import field_meanings

    said = memrt.telemetry.stats_schema()["$defs"]["stats"]["properties"]
    assert {name: about["description"] for name, about in said.items()} == field_meanings()


@pytest.mark.parametrize(
    "spoil",
    [
        lambda read: read.pop("process"),
        lambda read: read["process"].pop("live"),
        lambda read: read["process"].update(live=-1),
        lambda read: read.update(version=2),
        lambda read: read["policies"].clear(),
        lambda read: read["scopes"].append({"path": [], "stats": read["process"]}),
    ],
)
def test_schema_refuses_invalid_documents(spoil):
    read = copy.deepcopy(document())
    spoil(read)
    assert not VALIDATOR.is_valid(read)


def test_json_is_a_single_line_unless_indented():
    assert "\n" not in memrt.telemetry.stats_json()
    assert len(memrt.telemetry.stats_json(indent=2).splitlines()) > 20
    assert document(indent=2).keys() == document().keys()


def test_document_has_the_memory_of_the_process_on_request(monkeypatch):
    assert "memory" not in document()
    account = memrt.debug.process_memory()
    monkeypatch.setattr(stats_json, "process_memory", lambda: account)
    assert document(memory=True)["memory"] == account.to_dict()
    unknown = dataclasses.replace(account, rest=memrt.types.MemoryPart(None, None, "why"))
    monkeypatch.setattr(stats_json, "process_memory", lambda: unknown)
    parts = document(memory=True)["memory"]["parts"]
    counted = dataclasses.replace(account, huge_asked=8 << 20, huge_got=None)
    monkeypatch.setattr(stats_json, "process_memory", lambda: counted)
    memory = document(memory=True)["memory"]
    assert (memory["huge_asked"], memory["huge_got"]) == (8 << 20, None)
    assert parts["rest"] == {"resident": None, "mapped": None, "reason": "why"}


def test_schema_has_all_parts_of_the_memory():
    account = memrt.debug.process_memory().to_dict()
    memory = memrt.telemetry.stats_schema()["$defs"]["memory"]
    assert list(memory["properties"]) == memory["required"] == list(account)
    parts = memory["properties"]["parts"]
    assert list(parts["properties"]) == parts["required"] == list(account["parts"])
