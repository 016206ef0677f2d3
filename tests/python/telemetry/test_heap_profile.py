"""Profiles of the running process as profile.proto, decoded by an independent decoder."""

import sys

import memrt
import pytest
from memrt import _memrt
from profile_proto import decoded

LIVE = _memrt.live


def allocate(count, nbytes):
    return [memrt.alloc(nbytes) for _ in range(count)]


def rows_of(profile, function):
    """Return the rows whose call stack has a function of this file."""
    _, rows = decoded(profile)
    return [
        row
        for row in rows
        if any(name == function and file == "test_heap_profile.py" for name, file, _ in row[0])
    ]


def test_profile_has_live_buffers_by_stack_and_scope_and_totals():
    with memrt.debug.tracking():
        kept = allocate(3, 1000)
        with memrt.scope("profiled"):
            kept += allocate(2, 500)
        allocate(4, 100)
        profile = memrt.telemetry.heap_profile()
    rows = rows_of(profile, "test_profile_has_live_buffers_by_stack_and_scope_and_totals")
    live = [(labels, values) for _, labels, values in rows if values["inuse_space"]]
    assert [(labels, v["inuse_space"], v["inuse_objects"]) for labels, v in live] == [
        ({}, 3000, 3),
        ({"scope": "profiled"}, 1000, 2),
    ]
    assert sum(values["alloc_space"] for *_, values in rows) == 3000 + 1000 + 400
    assert sum(values["alloc_objects"] for *_, values in rows) == 3 + 2 + 4
    assert sum(values["inuse_space"] for *_, values in decoded(profile)[1]) == sum(
        buffer.nbytes for buffer in memrt.debug.live() if buffer.weight
    )
    del kept


def test_profile_of_a_sample_estimates_all_bytes():
    with memrt.debug.tracking(sample=1000):
        kept = allocate(5000, 1000)
        profile = memrt.telemetry.heap_profile()
    rows = rows_of(profile, "test_profile_of_a_sample_estimates_all_bytes")
    live = sum(buffer.nbytes * buffer.weight for buffer in memrt.debug.live())
    assert sum(values["inuse_space"] for *_, values in decoded(profile)[1]) == pytest.approx(
        live, abs=len(kept)
    )
    for kind in ("inuse", "alloc"):  # six standard deviations of 5,000 draws
        assert sum(v[f"{kind}_space"] for *_, v in rows) == pytest.approx(5_000_000, rel=0.07)
        assert sum(v[f"{kind}_objects"] for *_, v in rows) == pytest.approx(5000, rel=0.07)
    assert decoded(profile)[0].period == 1000


def test_profile_without_tracking_or_arguments_has_no_names(monkeypatch):
    named = memrt.alloc(1000, name="untracked")
    monkeypatch.delattr(sys, "argv")
    monkeypatch.setattr(_memrt, "live", lambda scopes: [row for row in LIVE(scopes) if row[3]])
    monkeypatch.setattr(_memrt, "site_allocations", lambda: [(0, 0)])
    message, rows = decoded(memrt.telemetry.heap_profile())
    assert rows == []
    assert message.string_table[message.mapping[0].filename] == ""
    assert message.period == 1
    assert named.nbytes == 1000


def test_buffers_without_a_call_stack_have_an_unknown_line():
    with memrt.debug.tracking(frames=0):
        kept = memrt.alloc(12_345)
        _, rows = decoded(memrt.telemetry.heap_profile())
    found = [calls for calls, _, values in rows if values["inuse_space"] >= kept.nbytes]
    assert [("unknown source line", "", 0)] in found
