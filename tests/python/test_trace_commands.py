"""The commands of traces: trace and convert."""

import csv
import io
import json
import os
import pty
import signal
import subprocess
import sys

import jsonschema
import memrt
import numpy as np
import pytest
from memrt.commands import perfetto as perfetto_format
from memrt.commands.progress import with_progress
from perfetto.protos.perfetto.trace import perfetto_trace_pb2

PROGRAM = """
import sys, memrt, numpy as np
kept = np.empty(100_000)
memrt.mark("half")
with memrt.scope("inner"):
    more = [np.empty(1000) for _ in range(20)]
print(sys.argv[1:])
sys.exit(int(sys.argv[1]) if len(sys.argv) > 1 else 0)
"""

# What https://www.speedscope.app/file-format-schema.json asks for, of the profiles made here.
NUMBERS = {"type": "array", "items": {"type": "integer", "minimum": 0}}
SPEEDSCOPE = {
    "type": "object",
    "required": ["$schema", "profiles", "shared"],
    "properties": {
        "$schema": {"const": "https://www.speedscope.app/file-format-schema.json"},
        "name": {"type": "string"},
        "exporter": {"type": "string"},
        "activeProfileIndex": {"type": "number"},
        "shared": {
            "type": "object",
            "required": ["frames"],
            "properties": {
                "frames": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "required": ["name"],
                        "properties": {
                            "name": {"type": "string"},
                            "file": {"type": "string"},
                            "line": {"type": "number"},
                            "col": {"type": "number"},
                        },
                        "additionalProperties": False,
                    },
                }
            },
        },
        "profiles": {
            "type": "array",
            "items": {
                "type": "object",
                "required": "type name unit startValue endValue samples weights".split(),
                "properties": {
                    "type": {"const": "sampled"},
                    "name": {"type": "string"},
                    "unit": {
                        "enum": "none nanoseconds microseconds milliseconds seconds bytes".split()
                    },
                    "startValue": {"type": "number"},
                    "endValue": {"type": "number"},
                    "samples": {"type": "array", "items": NUMBERS},
                    "weights": NUMBERS,
                },
                "additionalProperties": False,
            },
        },
    },
    "additionalProperties": False,
}


def command(*arguments, **options):
    options = {"capture_output": True, "text": True, "timeout": 60, **options}
    return subprocess.run([sys.executable, "-m", "memrt", *map(str, arguments)], **options)


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    return path


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """A trace of the program."""
    folder = tmp_path_factory.mktemp("recorded")
    (folder / "program.py").write_text(PROGRAM)
    result = command("trace", "-o", folder / "run.memtrace", folder / "program.py")
    assert result.returncode == 0, result.stderr
    return folder / "run.memtrace"


def test_a_program_is_recorded_and_ends_as_it_would(script, tmp_path):
    result = command("trace", "-o", "out.memtrace", script, "3", "-m", "x", cwd=tmp_path)
    assert (result.returncode, result.stdout) == (3, "['3', '-m', 'x']\n")
    trace = memrt.Trace(tmp_path / "out.memtrace")
    assert trace.is_complete
    assert [mark.name for mark in trace.marks] == ["half"]
    assert trace.usage()[0].name.endswith("program.py:3")
    assert f"memrt: {len(trace):,} events, " in result.stderr
    assert result.stderr.endswith(" in out.memtrace\n")


def test_a_module_is_recorded_into_a_file_named_after_it(script, tmp_path):
    result = command("trace", "--quiet", "-m", "program", cwd=tmp_path)
    assert (result.returncode, result.stderr) == (0, "")
    (path,) = tmp_path.glob("program.*.memtrace")
    assert len(memrt.Trace(path)) > 20


def test_only_the_last_events_are_kept(script, tmp_path):
    result = command("trace", "--last", "15", "-o", "t", script, cwd=tmp_path)
    assert "that came before the last" in result.stderr
    assert len(memrt.Trace(tmp_path / "t")) == 15


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["-o", "/no/such/folder/t"], "cannot record into '/no/such/folder/t': No such file"),
        (["-o", "/dev/full", "--force"], "cannot record into '/dev/full': Invalid argument"),
        (["-o", "program.py"], "'program.py' is there already: give another -o, or --force"),
        (["--frames", "200"], "frames must be from 0 to 128, not 200"),
        (["--last", "some"], "'some' is no whole number: write it like 20000, 20K or 1M"),
    ],
)
def test_what_cannot_be_recorded_is_said_in_a_sentence(script, tmp_path, arguments, says):
    result = command("trace", *arguments, "program.py", cwd=tmp_path)
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.startswith(f"memrt: {says}")
    assert result.stderr.count("\n") == 1
    assert script.read_text() == PROGRAM


def test_no_program_is_no_trace(tmp_path):
    result = command("trace", "-o", "t", "nowhere.py", cwd=tmp_path)
    assert result.returncode == 2
    assert not (tmp_path / "t").exists()


def test_a_disk_that_is_full_is_said_at_the_end(script, tmp_path):
    def limit():
        import resource

        resource.setrlimit(resource.RLIMIT_FSIZE, (500, resource.RLIM_INFINITY))

    result = command("trace", "--frames", "0", "-o", "t", script, "5", cwd=tmp_path,
                     preexec_fn=limit)  # fmt: skip
    assert result.returncode == 5
    assert "events were lost: File too large\n" in result.stderr
    assert memrt.Trace(tmp_path / "t").problem is not None


INTERRUPTED = """
import os, signal, numpy as np
signal.signal(signal.SIGINT, signal.default_int_handler)  # it may be ignored by inheritance
kept = np.empty(1000)
os.kill(os.getpid(), signal.SIGINT)
"""


def test_an_interrupted_program_leaves_its_trace(tmp_path):
    (tmp_path / "p.py").write_text(INTERRUPTED)
    result = command("trace", "-o", "t", "p.py", cwd=tmp_path)
    assert result.returncode == -signal.SIGINT
    assert memrt.Trace(tmp_path / "t").is_complete


def test_csv_has_a_row_for_each_event(recorded, tmp_path):
    result = command("convert", recorded, "--to", "csv", "-o", tmp_path / "t.csv")
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")
    trace = memrt.Trace(recorded)
    with open(tmp_path / "t.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(trace)
    assert [int(row["live_bytes"]) for row in rows] == trace.live.tolist()
    assert [row["mark"] for row in rows if row["event"] == "mark"] == ["half"]
    inner = [row for row in rows if row["scope"] == "inner" and row["event"] == "birth"]
    assert len(inner) == 20
    assert {row["bytes"] for row in inner} == {"8000"}
    assert inner[0]["place"].endswith("program.py:6")
    assert (inner[0]["policy"], inner[0]["alignment"]) == ("default", "64")
    times = [float(row["seconds"]) for row in rows]
    assert times == sorted(times)


def test_csv_goes_to_standard_output_also_to_a_reader_that_has_seen_enough(recorded):
    result = command("convert", recorded, "--to", "csv")
    assert result.stdout.splitlines()[0].startswith("seconds,event,block,bytes,")
    pipe = f"{sys.executable} -m memrt convert {recorded} --to csv | head -1"
    result = subprocess.run(pipe, shell=True, capture_output=True, text=True)
    assert (result.returncode, result.stderr) == (0, "")


def perfetto_packets(path):
    content = path.read_bytes()
    parsed = perfetto_trace_pb2.Trace()
    assert parsed.ParseFromString(content) == len(content)
    assert not unknown_fields(parsed)
    return parsed.packet


def unknown_fields(message):
    """Whether a field of the message, or of one in it, is not in the schema."""
    from google.protobuf.unknown_fields import UnknownFieldSet

    if len(UnknownFieldSet(message)):
        return True
    for field, value in message.ListFields():
        if field.message_type is not None:
            values = value if hasattr(value, "append") else [value]
            if any(unknown_fields(each) for each in values):
                return True
    return False


def test_perfetto_reads_what_it_gets_by_its_own_schema(recorded, tmp_path):
    result = command("convert", recorded, "--to", "perfetto", "-o", tmp_path / "t.pftrace")
    assert (result.returncode, result.stderr) == (0, "")
    packets = perfetto_packets(tmp_path / "t.pftrace")
    tracks = {
        packet.track_descriptor.uuid: packet.track_descriptor
        for packet in packets
        if packet.HasField("track_descriptor")
    }
    assert {track.name for track in tracks.values()} >= {"live bytes", "live bytes: inner"}
    trace = memrt.Trace(recorded)
    (live,) = [uuid for uuid, track in tracks.items() if track.name == "live bytes"]
    assert tracks[live].counter.unit == perfetto_trace_pb2.CounterDescriptor.UNIT_SIZE_BYTES
    events = [packet for packet in packets if packet.HasField("track_event")]
    assert all(packet.trusted_packet_sequence_id == 1 for packet in packets)
    assert all(packet.track_event.track_uuid in tracks for packet in events)
    values = [e.track_event.counter_value for e in events if e.track_event.track_uuid == live]
    assert values == trace.live.tolist()
    marks = [e for e in events if e.track_event.name == "half"]
    assert [e.track_event.type for e in marks] == [perfetto_trace_pb2.TrackEvent.TYPE_INSTANT]
    begin = trace.began.timestamp()
    assert abs(marks[0].timestamp / 1e9 - begin - trace.marks[0].time) < 1e-3


def test_perfetto_shows_refused_requests(tmp_path):
    with (
        memrt.trace(tmp_path / "t"),
        memrt.testing.fail_allocations(1),
        pytest.raises(MemoryError),
    ):
        memrt.zeros(128)
    result = command("convert", tmp_path / "t", "--to", "perfetto", "-o", tmp_path / "p")
    assert result.returncode == 0
    names = [packet.track_event.name for packet in perfetto_packets(tmp_path / "p")]
    assert "refused: 1.0 KiB" in names


def test_of_many_points_the_peaks_are_kept():
    values = np.random.default_rng(1).integers(0, 10**9, 123_457)
    kept = perfetto_format.thinned(values, 1000)
    assert 500 < len(kept) <= 1000
    assert (np.diff(kept) > 0).all()
    assert values[kept].max() == values.max()
    assert values[kept].min() == values.min()
    assert kept[-1] == len(values) - 1
    assert perfetto_format.thinned(values, 10**6).tolist() == list(range(len(values)))


def test_speedscope_reads_what_it_gets_by_its_schema(recorded, tmp_path):
    result = command("convert", recorded, "--to", "speedscope", "-o", tmp_path / "s.json")
    assert (result.returncode, result.stderr) == (0, "")
    content = json.loads((tmp_path / "s.json").read_text())
    jsonschema.validate(content, SPEEDSCOPE)
    frames, trace = content["shared"]["frames"], memrt.Trace(recorded)
    peak, total, end = content["profiles"]
    assert peak["endValue"] == trace.peak
    assert end["endValue"] == trace.live[-1]
    assert total["endValue"] == sum(usage.total for usage in trace.usage())
    for profile in content["profiles"]:
        assert len(profile["samples"]) == len(profile["weights"])
        assert sum(profile["weights"]) == profile["endValue"]
        assert all(0 <= frame < len(frames) for stack in profile["samples"] for frame in stack)
    largest = peak["samples"][int(np.argmax(peak["weights"]))]
    assert frames[largest[-1]]["file"].endswith("program.py")
    assert frames[largest[-1]]["line"] == 3
    assert frames[largest[0]]["name"] == "<module>", "what ran the program is left out"


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (None, "cannot read 't': No such file or directory"),
        (b"", "'t' is empty: record one by `python -m memrt trace SCRIPT`"),
        (b"something else entirely", "'t' is no trace of memrt"),
    ],
)
def test_what_is_no_trace_is_said_in_a_sentence(tmp_path, content, says):
    if content is not None:
        (tmp_path / "t").write_bytes(content)
    result = command("convert", "t", "--to", "csv", cwd=tmp_path)
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.startswith(f"memrt: {says}")
    assert result.stderr.count("\n") == 1


def test_a_trace_that_was_cut_off_is_converted_and_said_to_be_cut(recorded, tmp_path):
    (tmp_path / "t").write_bytes(recorded.read_bytes()[:-20])
    result = command("convert", tmp_path / "t", "--to", "csv")
    assert result.returncode == 0
    assert "the trace was cut off" in result.stderr
    assert len(result.stdout.splitlines()) > 10


def test_a_file_that_is_there_is_kept_unless_forced(recorded, tmp_path):
    target = tmp_path / "out.csv"
    target.write_text("precious")
    result = command("convert", recorded, "--to", "csv", "-o", target)
    assert result.returncode == 2
    assert "is there already" in result.stderr
    assert target.read_text() == "precious"
    assert command("convert", recorded, "--to", "csv", "-o", target, "--force").returncode == 0
    assert target.read_text().startswith("seconds,")
    assert [path.name for path in tmp_path.iterdir()] == ["out.csv"]


def test_an_output_that_cannot_be_written_is_said(recorded):
    result = command("convert", recorded, "--to", "csv", "-o", "/no/such/folder/t.csv")
    assert result.returncode == 2
    assert result.stderr.startswith("memrt: cannot write '/no/such/folder/t.csv': No such file")


@pytest.mark.parametrize("verb", ["trace", "convert"])
def test_help_has_an_example_and_exit_codes(verb):
    result = command(verb, "--help")
    assert result.returncode == 0
    assert f"python -m memrt {verb} " in result.stdout
    assert "exit status: " in result.stdout


def at_a_terminal(items, delay):
    """What a terminal is sent while work goes on."""
    code = (
        "import time\n"
        "from memrt.commands.progress import with_progress\n"
        f"for _ in with_progress(range({items}), {items}, 'writing'): time.sleep({delay})\n"
    )
    leader, follower = pty.openpty()
    subprocess.run([sys.executable, "-c", code], stderr=follower, check=True)
    os.set_blocking(leader, False)
    os.close(follower)
    try:
        return os.read(leader, 10_000).decode()
    except (BlockingIOError, OSError):
        return ""
    finally:
        os.close(leader)


def test_progress_is_for_terminals_and_long_work():
    shown = at_a_terminal(5, 0.25)
    assert "writing: 20%" in shown
    assert shown.endswith("\r\x1b[K")
    assert at_a_terminal(5, 0) == ""
    assert list(with_progress(io.StringIO("a\nb\n"), 2, "reading")) == ["a\n", "b\n"]
