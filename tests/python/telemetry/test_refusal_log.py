"""Log records of refused allocations."""

import json
import logging
import os
import sys

import memrt
import numpy as np
import pytest
from atonce import on_threads

MIB = 1 << 20


class Kept(logging.Handler):
    """Handler that keeps the records."""

    def __init__(self):
        super().__init__()
        self.records = []

    def emit(self, record):
        self.records.append(record)


@pytest.fixture
def kept():
    """Return a handler of the logger "memrt"."""
    handler = Kept()
    logging.getLogger("memrt").addHandler(handler)
    yield handler
    logging.getLogger("memrt").removeHandler(handler)


@pytest.fixture
def policy():
    """Return a policy with a limit of 1 MiB."""
    return memrt.Policy(name="small", limit=MIB)


def refuse(policy, nbytes=2 * MIB):
    with policy, pytest.raises(MemoryError):
        np.empty(nbytes, "u1")


def test_refused_array_leaves_one_record_with_its_cause(kept, policy):
    with memrt.debug.tracking(), memrt.scope("load"), policy:
        table = np.empty(MIB // 2, "u1")
    with memrt.telemetry.log_refusals():
        refuse(policy)
    refuse(policy)
    (record,) = kept.records
    assert (record.name, record.levelname) == ("memrt", "ERROR")
    fields = record.memrt
    assert json.loads(json.dumps(fields)) == fields
    assert (fields["event"], fields["requested"], fields["left_out"]) == (
        "out_of_memory",
        2 * MIB,
        0,
    )
    assert {"of": "policy 'small'", "limit": MIB, "live": MIB // 2} in fields["limits"]
    assert {"scope": "load", "live": MIB // 2} in fields["scopes"]
    assert fields["sites"][0]["file"] == __file__
    assert (fields["sites"][0]["bytes"], fields["sites"][0]["buffers"]) == (MIB // 2, 1)
    assert fields["sites"][0]["function"].startswith("test_refused_array")
    assert fields["peak"] >= fields["live"] == memrt.stats().live
    assert record.getMessage().startswith("no memory for 2.0 MiB: ")
    del table


def test_lists_have_the_five_largest_rows(kept, policy):
    kept_arrays = []
    for n in range(7):
        with memrt.scope(f"s{n}", limit=f"{n + 1} MiB") as scope, memrt.debug.tracking():
            exec(
                compile(f"a = memrt.empty({n + 1}, 'u1')", f"f{n}", "exec"),
                {"memrt": memrt},
                found := {},
            )
            kept_arrays.append((found["a"], scope))
    with memrt.telemetry.log_refusals():
        refuse(policy)
    fields = kept.records[0].memrt
    ours = [row["scope"] for row in fields["scopes"]]
    assert ours == ["s6", "s5", "s4", "s3", "s2"]
    assert [row["file"] for row in fields["sites"]] == ["f6", "f5", "f4", "f3", "f2"]
    assert len(fields["limits"]) == 5
    room = [row["limit"] - row["live"] for row in fields["limits"]]
    assert room == sorted(room)
    del kept_arrays, found, scope


def test_sites_are_empty_without_tracking(run_python):
    result = run_python(
        "import logging, memrt\n"
        "logging.basicConfig(format='%(levelname)s:%(name)s:%(message)s:%(memrt)s')\n"
        "memrt.limit('1 MiB')\n"
        "memrt.telemetry.log_refusals()\n"
        "try:\n"
        "    memrt.empty(2 << 20, 'u1')\n"
        "except MemoryError:\n"
        "    pass\n"
    )
    (line,) = result.stderr.splitlines()
    assert line.startswith("ERROR:memrt:no memory for 2.0 MiB: 0 B live in the process:{")
    assert "'sites': []" in line


def test_records_keep_their_distance_and_count_the_others(kept, policy, monkeypatch):
    clock = [100.0]
    monkeypatch.setattr("memrt._leaks.refusal_log.monotonic", lambda: clock[0])
    with memrt.telemetry.log_refusals(interval=5):
        for clock[0] in (100.0, 101.0, 104.9, 105.0, 111.0):
            refuse(policy)
    assert [record.memrt["left_out"] for record in kept.records] == [0, 2, 0]


def test_interval_of_zero_leaves_out_no_record(kept, policy):
    with memrt.telemetry.log_refusals(interval=0):
        for _ in range(3):
            refuse(policy)
    assert len(kept.records) == 3


@pytest.mark.parametrize(
    ("interval", "error", "says"),
    [
        (-1, ValueError, "interval must be 0 seconds or more, got -1"),
        (float("nan"), ValueError, "interval must be 0 seconds or more, got nan"),
        ("5", TypeError, "interval must be a number of seconds, got '5'"),
    ],
)
def test_bad_interval_is_refused(interval, error, says):
    with pytest.raises(error, match=says):
        memrt.telemetry.log_refusals(interval=interval)


def test_other_logger_gets_the_record_at_its_level(policy):
    logger, handler = logging.getLogger("memrt-service"), Kept()
    logger.addHandler(handler)
    with memrt.telemetry.log_refusals(logger, interval=0):
        refuse(policy)
        logger.setLevel(logging.CRITICAL)
        refuse(policy)
    assert [record.name for record in handler.records] == ["memrt-service"]


def test_handler_that_fails_or_allocates_keeps_the_memory_error(policy, monkeypatch):
    caught = []
    monkeypatch.setattr(sys, "unraisablehook", lambda info: caught.append(info.exc_value))

    class Bad(logging.Handler):
        def emit(self, record):
            np.empty(2 * MIB, "u1")

    logger = logging.Logger("service")
    logger.addHandler(Bad())
    with memrt.telemetry.log_refusals(logger):
        refuse(policy)
    assert [type(error).__name__ for error in caught] == ["MemoryError"]


def test_threads_share_one_interval(kept, policy):
    def work(_number):
        for _ in range(5):
            refuse(policy)

    with memrt.telemetry.log_refusals(interval=3600) as handle:
        on_threads(work, 4)
    assert len(kept.records) == 1
    assert handle._interval._left_out == 19


def test_forked_child_logs_while_the_parent_holds_its_lock(policy):
    reader, writer = os.pipe()
    logger = logging.Logger("service")
    handler = logging.StreamHandler(os.fdopen(writer, "w"))
    logger.addHandler(handler)
    with memrt.telemetry.log_refusals(logger, interval=0) as handle:
        refuse(policy)
        with handle._interval._locks[os.getpid()]:
            child = os.fork()
            if child == 0:
                refuse(policy)
                os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
    handler.stream.close()
    with os.fdopen(reader) as lines:
        assert len(lines.readlines()) == 2
