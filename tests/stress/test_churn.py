"""Test the rule for flat memory: flat memory passes, growing memory fails."""

from __future__ import annotations

import json
import random
from dataclasses import replace

import churn
import pytest
import stress
from flatness import LEAST, MIB, Sample, faults
from rich.progress import Progress

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
def commands(tmp_path_factory) -> dict[str, list[str]]:
    return churn.commands(tmp_path_factory.mktemp("churn"))


def run(command: list[str], leak: str) -> list[Sample]:
    """Return a short run: too short to prove flat memory, long enough to show a leak."""
    return churn.watch(churn.run_of("", command, 1, LEAST, leak), LEAST, Progress(disable=True))


@pytest.mark.parametrize("name", ["blocks", "arrays"])
def test_programs_make_memory_and_hold_what_memrt_says(name, commands):
    idle, *worked = run(commands[name], "none")
    assert len(worked) == LEAST
    assert [s.live - idle.live for s in worked] == [s.held for s in worked]
    assert worked[-1].made > worked[0].made > 0
    assert worked[-1].threads > LEAST


@pytest.mark.parametrize("name", ["blocks", "arrays"])
@pytest.mark.parametrize(
    ("leak", "fault"), [("blocks", "live bytes must be"), ("pages", "unknown to memrt")]
)
def test_leak_made_on_purpose_is_detected(name, leak, fault, commands):
    assert any(fault in found for found in faults(run(commands[name], leak)))


def test_verdict_of_each_program_is_printed(monkeypatch, tmp_path, capsys):
    leaking = [*steady()[:-1], replace(steady()[-1], live=0)]
    shells = {}
    for name, samples in {"good": steady(), "bad": leaking}.items():
        printed = "\n".join(json.dumps(vars(sample)) for sample in samples)
        (tmp_path / name).write_text(f"echo a warning\ncat <<END\n{printed}\nEND\n")
        shells[name] = ["sh", str(tmp_path / name)]
    monkeypatch.setattr(churn, "OUT", tmp_path)
    monkeypatch.setattr(churn, "commands", lambda folder: shells)
    assert stress.main(["churn", "1"]) == 1
    *_, good, bad = capsys.readouterr().out.splitlines()
    assert good == "good: flat"
    assert bad.startswith("bad: after 40 s live bytes must be")
    assert len((tmp_path / "good.jsonl").read_text().splitlines()) == len(steady())
    del shells["bad"]
    assert stress.main(["churn", "1"]) == 0
