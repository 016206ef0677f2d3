"""Read event traces with `memrt.debug.Trace`, including invalid bytes."""

import struct
import time

import memrt
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from memrt._trace.events import ADOPTION, ALLOC, EVENT, FAILURE, FREE, MARK, RESIZE, STORED
from memrt._trace.trace_file import END, EVENTS, MAGIC, POLICY, SITE, TEXT
from trace_writer import ADOPTED, INLINE, Writer


@pytest.fixture
def read(tmp_path):
    def of(content):
        path = tmp_path / "t.memtrace"
        path.write_bytes(content if isinstance(content, bytes) else content.content)
        return memrt.debug.Trace(path)

    return of


@pytest.mark.parametrize("order", ["<", ">"])
def test_both_byte_orders_are_read(read, order):
    writer = Writer(order).text(1, "work").text(2, "w.py").text(3, "mine").text(4, "a/b")
    writer.site(9, (1, 2, 12, 0)).policy(7, 3, 4)
    writer.events((5, ALLOC, 1, 100, INLINE, 9, 7), (8, FREE, 1, 100, INLINE, 0, 7), thread=77)
    trace = read(writer.end(2, 0, 0, 4_000_000_000))
    assert trace.events.dtype == EVENT
    assert trace.events["nbytes"].tolist() == [100, 100]
    assert trace.events["thread"].tolist() == [77, 77]
    assert trace.events["align_log2"].tolist() == [6, 6]
    assert str(trace.place(9)) == "work at w.py:12"
    assert trace.policies[7] == ("mine", "a/b", 5, 64)
    assert (trace.process, trace.library, trace.duration) == (123, "9.8.7", 4.0)
    assert trace.began.year == 2001
    assert trace.is_complete


def test_events_of_threads_are_ordered_by_time(read):
    writer = Writer().events((5, ALLOC, 1, 1), (30, FREE, 1, 1), thread=1)
    writer.events((3, ALLOC, 2, 2), (40, FREE, 2, 2), thread=2)
    trace = read(writer.end())
    assert trace.events["time"].tolist() == [3, 5, 30, 40]
    assert trace.events["thread"].tolist() == [2, 1, 1, 2]
    assert trace.live.tolist() == [2, 3, 2, 0]


def test_allocation_comes_before_free_at_the_same_time(read):
    writer = Writer().events((5, FREE, 1, 9), thread=2)
    trace = read(writer.events((5, ALLOC, 1, 9), thread=1).end())
    (buffer,) = trace.buffers
    assert buffer["seen_alloc"]
    assert buffer["seen_free"]
    assert trace.live[-1] == 0


def test_resize_changes_the_live_bytes(read):
    writer = Writer().events(
        (1, ALLOC, 1, 100), (2, RESIZE, 1, 500), (3, RESIZE, 1, 50), (4, FREE, 1, 50)
    )
    trace = read(writer.end())
    assert trace.live.tolist() == [100, 500, 50, 0]
    assert (trace.peak, trace.peak_event) == (500, 1)
    (buffer,) = trace.buffers
    assert (buffer["nbytes"], buffer["largest"]) == (100, 500)
    assert (buffer["allocated"], buffer["freed"]) == (1, 4)
    (usage,) = trace.usage("policy")
    assert usage == ("unknown policy", 1, 500, 500, 0)


def test_adopted_memory_is_not_live_bytes(read):
    writer = Writer().events((1, ADOPTION, 1, 100, ADOPTED), (2, ALLOC, 2, 10))
    trace = read(writer.events((3, FREE, 1, 100, ADOPTED)).end())
    assert trace.live.tolist() == [0, 10, 10]
    assert len(trace.buffers) == 2


def test_marks_and_failures_keep_the_live_bytes(read):
    writer = Writer().text(3, "now").events((1, ALLOC, 1, 100), (2, MARK, 3, 0, 0))
    trace = read(writer.events((4, FAILURE, 0, 2**64 - 1, 0), (5, MARK, 99, 0, 0)).end())
    assert trace.live.tolist() == [100, 100, 100, 100]
    assert [(mark.time, mark.name) for mark in trace.marks] == [(2e-9, "now"), (5e-9, "?")]


def test_blocks_without_an_allocation_event_are_listed(read):
    writer = Writer(last=5).events((1, FREE, 1, 100), (2, ALLOC, 2, 10), (3, FREE, 2, 10))
    trace = read(writer.events((4, RESIZE, 3, 7), (5, FREE, 3, 7)).end(9, 0, 4, 5))
    assert trace.live.tolist() == [0, 10, 0, 7, 0]
    assert trace.buffers["seen_alloc"].tolist() == [False, True, False]
    assert trace.problem == "4 events overwritten: last 5 kept"


def test_usage_is_summed_by_place_scope_policy_or_thread(read):
    writer = Writer().text(1, "f").text(2, "f.py").text(3, "p").text(4, "s")
    writer.site(1, (1, 2, 1, 0)).site(2, (1, 2, 2, 0)).policy(1, 3).policy(2, 3, 4)
    writer.events((1, ALLOC, 1, 100, INLINE, 1, 1), (2, ALLOC, 2, 1000, INLINE, 2, 2))
    writer.events((3, RESIZE, 1, 300, INLINE, 0, 1), (4, FREE, 2, 1000, INLINE, 0, 2), thread=8)
    trace = read(writer.end())
    assert trace.usage() == [
        ("f at f.py:2", 1, 1000, 1000, 0),
        ("f at f.py:1", 1, 300, 300, 300),
    ]
    assert trace.usage("scope") == [("s", 1, 1000, 1000, 0), ("no scope", 1, 300, 300, 300)]
    assert trace.usage("policy") == [("p", 2, 1300, 1300, 300)]
    assert trace.usage("thread") == [("thread 1", 2, 1300, 1300, 300)]
    with pytest.raises(ValueError, match="'place', 'scope'"):
        trace.usage("colour")


def test_empty_trace_has_no_events(read):
    trace = read(Writer().end())
    assert len(trace) == trace.peak == trace.duration == 0
    assert trace.peak_event == -1
    assert len(trace.buffers) == 0
    assert trace.usage() == trace.marks == []
    assert "0 events" in repr(trace)


def test_records_of_unknown_types_are_skipped(read):
    writer = Writer().record(99, b"whatever").events((1, ALLOC, 1, 100)).record(2**32 - 1, b"")
    assert len(read(writer.end())) == 1


def test_missing_text_site_and_policy_records_read_as_unknown(read):
    writer = Writer().site(1, (5, 6, 7, 0)).policy(1, 8, 9).site(2)
    trace = read(writer.events((1, ALLOC, 1, 100, INLINE, 3, 4)).end())
    assert trace.place(3) is None
    assert str(trace.place(1)) == "code at an unknown file:7"
    assert trace.policies[1] == ("?", None, 5, 64)
    assert trace.usage("place")[0].name == "unknown source line"
    assert 2 not in trace.sites


def whole_trace():
    writer = Writer().text(1, "name").site(1, (1, 1, 3, 0)).policy(1, 1, 1)
    writer.events((1, ALLOC, 1, 100, INLINE, 1, 1), (2, MARK, 1, 0))
    return writer.end(2).content


def test_truncated_trace_is_read_up_to_its_last_whole_record(read):
    content = whole_trace()
    for length in range(64, len(content)):
        trace = read(content[:length])
        assert not trace.is_complete
        assert "cut off" in trace.problem
        assert len(trace) in (0, 2)
    assert read(content).problem is None


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "is empty"),
        (b"PK\3\4 some archive", "is not a trace of memrt"),
        (b"MEMRTRC", "is not a trace of memrt"),
        (MAGIC + b"\0" * 10, "cut off in the header"),
        (MAGIC + b"\0" * 100, "damaged at byte 8"),
        (Writer(version=2).content, "must have format version 1, got 2.*a newer memrt"),
        (Writer(version=0).content, "must have format version 1, got 0.*another memrt"),
        (Writer().content[:20] + struct.pack("<I", 65) + Writer().content[24:], "byte 16"),
        (Writer().content[:16] + struct.pack("<I", 63) + Writer().content[20:], "byte 16"),
        (Writer().content + struct.pack("<2I", 1, 7) + b"1234567", "damaged at byte 64"),
        (Writer().record(EVENTS, b"\0" * 40).content, "damaged at byte 64"),
        (Writer().record(EVENTS, b"").content, "damaged at byte 64"),
        (Writer().record(TEXT, struct.pack("<2I", 1, 9) + b"12345678").content, "byte 64"),
        (Writer().record(SITE, struct.pack("<2I", 1, 2**32 - 1)).content, "byte 64"),
        (Writer().record(POLICY, b"\0" * 8).content, "byte 64"),
        (Writer().record(END, b"\0" * 8).content, "byte 64"),
    ],
)
def test_invalid_trace_raises_a_single_line_trace_error(read, content, says):
    with pytest.raises(memrt.debug.TraceError, match=says) as raised:
        read(content)
    assert "\n" not in str(raised.value)


def test_missing_file_or_folder_raises_os_error():
    with pytest.raises(FileNotFoundError):
        memrt.debug.Trace("/no/such/file")
    with pytest.raises(IsADirectoryError):
        memrt.debug.Trace("/tmp")


def use_all(trace):
    """Call every query of a trace; no query fails, whatever the numbers."""
    assert len(trace.live) == len(trace)
    assert len(repr(trace)) > 0
    assert len(trace.buffers) <= len(trace)
    for by in ("place", "scope", "policy", "thread"):
        trace.usage(by)
    assert len(trace.marks) <= len(trace)
    assert trace.duration >= 0
    assert trace.problem is None or "\n" not in trace.problem


def use_what_is_read(path):
    """Call every query of a trace, or check that the error names the file."""
    try:
        trace = memrt.debug.Trace(path)
    except memrt.debug.TraceError as error:
        message = str(error)
    else:
        use_all(trace)
        message = str(path)
    assert str(path) in message


number = st.one_of(st.integers(0, 5), st.integers(0, 2**32 - 1))
large = st.one_of(st.integers(0, 1000), st.integers(0, 2**64 - 1))
small = st.integers(0, 255)
event = st.tuples(large, st.one_of(st.integers(0, 7), small), number, large, small, number, number)


@given(st.lists(event, max_size=30), st.lists(event, max_size=10), st.sampled_from("<>"))
def test_events_with_random_numbers_are_read(tmp_path_factory, first, second, order):
    path = tmp_path_factory.getbasetemp() / "numbers.memtrace"
    writer = Writer(order).text(1, "t").site(1, (1, 1, 2**64 - 1, 7)).policy(1, 1, 1)
    path.write_bytes(writer.events(*first).events(*second, thread=2).content)
    trace = memrt.debug.Trace(path)
    assert len(trace) == len(first) + len(second)
    use_all(trace)


@given(st.data())
def test_damaged_file_is_read_or_raises_trace_error(tmp_path_factory, data):
    content = bytearray(whole_trace())
    for _ in range(data.draw(st.integers(1, 6))):
        at = data.draw(st.integers(0, len(content) - 1))
        content[at] = data.draw(small)
    path = tmp_path_factory.getbasetemp() / "damaged.memtrace"
    path.write_bytes(bytes(content[: data.draw(st.integers(0, len(content)))]))
    use_what_is_read(path)


@given(st.binary(max_size=400))
@example(b"\1\0\0\0\xf8\xff\xff\xff")
def test_random_bytes_after_the_header_raise_only_trace_error(tmp_path_factory, garbage):
    path = tmp_path_factory.getbasetemp() / "garbage.memtrace"
    path.write_bytes(Writer().content + garbage)
    use_what_is_read(path)


def test_a_million_events_are_read_in_10_seconds(read):
    """The limit is ten times the usual second, so a Python loop over events would fail."""
    rows = np.zeros(1_000_000, EVENT)
    rows["time"] = np.arange(len(rows))
    rows["block"] = np.arange(len(rows)) // 2 + 1
    rows["type"] = np.where(np.arange(len(rows)) % 2, FREE, ALLOC)
    rows["nbytes"] = rows["block"]
    stored = np.zeros(len(rows), STORED)
    for name in stored.dtype.names[:-1]:
        stored[name] = rows[name]
    head = struct.pack("<4I", EVENTS, 8 + 500 * 32, 1, 500)
    pieces = [head + stored[at : at + 500].tobytes() for at in range(0, len(rows), 500)]
    content = b"".join([Writer().content, *pieces])
    began = time.process_time()
    trace = read(content)
    use_all(trace)
    assert time.process_time() - began < 10
    assert trace.peak == 500_000
    assert trace.live[-1] == 0
