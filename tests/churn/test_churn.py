"""Test the rule for flat memory: flat memory passes, growing memory fails."""

from __future__ import annotations

import random
from dataclasses import replace

import churn
import pytest
from flatness import LEAST, MIB, Sample, faults

IDLE = Sample(0, 2 * MIB, 2 * MIB, 0, 0, 0, 0, 0, 0)


def steady(count: int = 40) -> list[Sample]:
    """Return samples of a process whose memory varies at random without a trend."""
    chance = random.Random(count)
    found = [IDLE]
    for i in range(1, count + 1):
        held, cached = chance.randrange(60 * MIB, 96 * MIB), chance.randrange(10 * MIB, 40 * MIB)
        resident = IDLE.untold + held + cached + chance.randrange(4 * MIB)
        peak = (140 + chance.randrange(12)) * MIB
        found.append(Sample(i, peak, resident, held, held, cached, held + cached, 1000 * i, 10 * i))
    return found


def test_memory_that_goes_up_and_down_is_flat():
    for count in range(LEAST, 100, 7):
        assert faults(steady(count)) == []


def test_peak_that_grows_is_not_flat():
    grown = [replace(s, peak=s.peak + i * MIB) for i, s in enumerate(steady())]
    assert ["the peak grows" in fault for fault in faults(grown)] == [True]


def test_resident_memory_that_grows_unknown_to_memrt_is_not_flat():
    grown = [replace(s, resident=s.resident + i * MIB // 5) for i, s in enumerate(steady())]
    assert ["unknown to memrt grows" in fault for fault in faults(grown)] == [True]


def test_rising_bytes_in_use_without_holder_are_not_flat():
    first, *others, last = steady()
    wrong = faults([first, *others, replace(last, live=last.live + 1)])
    assert [f"got {last.held + 1}" in fault for fault in wrong] == [True]


def test_large_unaccounted_resident_memory_is_a_fault():
    told = [s if s == IDLE else replace(s, resident=s.resident + 20 * MIB) for s in steady()]
    assert all("of resident memory are unknown" in fault for fault in faults(told))
    assert faults(told)


def test_few_samples_and_rounds_without_work_prove_nothing():
    assert faults(steady(LEAST - 1)) == [f"samples must be at least {LEAST}, got {LEAST - 1}"]
    stopped = [replace(s, made=1000) for s in steady()]
    assert faults(stopped) == ["a round allocated no block"]


@pytest.fixture(scope="module")
def programs(tmp_path_factory) -> dict[str, list[str]]:
    return churn.programs(tmp_path_factory.mktemp("churn"))


def run(command: list[str], leak: str) -> list[Sample]:
    """Return a short run: too short to prove flat memory, long enough to show a leak."""
    return churn.watch("", command, 1, LEAST, leak, lambda name, sample: None)


@pytest.mark.parametrize("name", ["blocks", "arrays"])
def test_programs_make_memory_and_hold_what_memrt_says(name, programs):
    idle, *worked = run(programs[name], "none")
    assert len(worked) == LEAST
    assert [s.live - idle.live for s in worked] == [s.held for s in worked]
    assert worked[-1].made > worked[0].made > 0
    assert worked[-1].threads > LEAST


@pytest.mark.parametrize("name", ["blocks", "arrays"])
def test_forgotten_blocks_are_seen(name, programs):
    assert any("live bytes must be" in fault for fault in faults(run(programs[name], "blocks")))


@pytest.mark.parametrize("name", ["blocks", "arrays"])
def test_pages_that_memrt_does_not_know_of_are_seen(name, programs):
    assert any("unknown to memrt" in fault for fault in faults(run(programs[name], "pages")))
