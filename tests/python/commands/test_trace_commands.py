"""The commands trace and convert, for event traces."""

import csv
import io
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import jsonschema
import memrt
import numpy as np
import pytest
from command_line import run_memrt
from memrt._profile.recording import loads
from memrt.commands.formats import perfetto as perfetto_format
from memrt.commands.formats import pprof as pprof_format
from memrt.commands.output.progress import with_progress
from perfetto.protos.perfetto.trace import perfetto_trace_pb2
from profile_proto import decoded, unknown_fields

pytestmark = pytest.mark.slow

PROGRAM = """
import sys, memrt, numpy as np
kept = np.empty(100_000)
memrt.debug.mark("half")
with memrt.scope("inner"):
    more = [np.empty(1000) for _ in range(20)]
print(sys.argv[1:])
sys.exit(int(sys.argv[1]) if len(sys.argv) > 1 else 0)
"""

# Requirements of https://www.speedscope.app/file-format-schema.json for the profiles made here.
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


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    return path


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """Return the path of an event trace of the program."""
    folder = tmp_path_factory.mktemp("recorded")
    (folder / "program.py").write_text(PROGRAM)
    result = run_memrt("trace", "-o", folder / "run.memtrace", folder / "program.py")
    assert result.returncode == 0, result.stderr
    return folder / "run.memtrace"


def test_trace_records_the_program_and_keeps_its_exit_status(script, tmp_path):
    result = run_memrt("trace", "-o", "out.memtrace", script, "3", "-m", "x", cwd=tmp_path)
    assert (result.returncode, result.stdout) == (3, "['3', '-m', 'x']\n")
    trace = memrt.debug.Trace(tmp_path / "out.memtrace")
    assert trace.is_complete
    assert [mark.name for mark in trace.marks] == ["half"]
    assert trace.usage()[0].name.endswith("program.py:3")
    assert f"memrt: {len(trace):,} events, " in result.stderr
    assert result.stderr.endswith(" in out.memtrace\n")


def test_trace_of_a_module_is_named_after_the_package(script, tmp_path):
    (tmp_path / "tools").mkdir()
    script.rename(tmp_path / "tools" / "fill.py")
    result = run_memrt("trace", "--quiet", "-m", "tools.fill", cwd=tmp_path)
    assert (result.returncode, result.stderr) == (0, "")
    (path,) = tmp_path.glob("tools.*.memtrace")
    assert len(memrt.debug.Trace(path)) > 20


@pytest.mark.parametrize(("frames", "native"), [(1, 0), (2, 0), (0, 3), (2, 3)])
def test_frames_and_native_options_limit_the_recorded_calls(tmp_path, frames, native):
    code = "import numpy as np\ndef f(n): return np.empty(5000) if n == 0 else f(n - 1)\nk = f(5)\n"
    (tmp_path / "p.py").write_text(code)
    result = run_memrt("trace", "--frames", frames, "--native", native, "-o", "t", "p.py",
                     cwd=tmp_path)  # fmt: skip
    assert result.returncode == 0, result.stderr
    trace = memrt.debug.Trace(tmp_path / "t")
    (site,) = {row["site"] for row in trace.buffers if row["nbytes"] == 40_000}
    found = trace.sites[site].frames
    natives = [frame for frame in found if frame.is_native]
    assert [frame.function for frame in found if not frame.is_native] == ["f"] * frames
    assert bool(natives) == bool(native)
    assert len(natives) <= native


def test_last_option_keeps_only_the_last_events(script, tmp_path):
    result = run_memrt("trace", "--last", "15", "-o", "t", script, cwd=tmp_path)
    assert " earlier events\n" in result.stderr
    assert len(memrt.debug.Trace(tmp_path / "t")) == 15


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["-o", "/no/such/folder/t"], "cannot record into '/no/such/folder/t': No such file"),
        (["-o", "/dev/full", "--force"], "cannot record into '/dev/full': Invalid argument"),
        (["-o", "program.py"], "'program.py' exists already: name another file, or add --force"),
        (["--frames", "200"], "frames must be from 0 to 128, got 200"),
        (["--last", "some"], "count must be a whole number like 20000, 20K or 1M, got 'some'"),
    ],
)
def test_bad_trace_arguments_give_a_single_line_error(script, tmp_path, arguments, says):
    result = run_memrt("trace", *arguments, "program.py", cwd=tmp_path)
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.startswith(f"memrt: {says}")
    assert result.stderr.count("\n") == 1
    assert script.read_text() == PROGRAM


def test_missing_program_leaves_no_trace(tmp_path):
    result = run_memrt("trace", "-o", "t", "nowhere.py", cwd=tmp_path)
    assert result.returncode == 2
    assert not (tmp_path / "t").exists()


def test_file_size_limit_reports_lost_events_and_keeps_status(script, tmp_path):
    def limit():
        import resource

        resource.setrlimit(resource.RLIMIT_FSIZE, (500, resource.RLIM_INFINITY))

    result = run_memrt("trace", "--frames", "0", "-o", "t", script, "5", cwd=tmp_path,
                     preexec_fn=limit)  # fmt: skip
    assert result.returncode == 5
    assert "events were lost: File too large\n" in result.stderr
    assert "Warning" not in result.stderr
    assert memrt.debug.Trace(tmp_path / "t").problem is not None


INTERRUPTED = """
import os, signal, numpy as np
signal.signal(signal.SIGINT, signal.default_int_handler)  # it may be ignored by inheritance
kept = np.empty(1000)
os.kill(os.getpid(), signal.SIGINT)
"""


def test_interrupted_program_leaves_a_complete_trace(tmp_path):
    (tmp_path / "p.py").write_text(INTERRUPTED)
    result = run_memrt("trace", "-o", "t", "p.py", cwd=tmp_path)
    assert result.returncode == -signal.SIGINT
    assert memrt.debug.Trace(tmp_path / "t").is_complete


def test_csv_has_a_row_for_each_event(recorded, tmp_path):
    result = run_memrt("convert", recorded, "--to", "csv", "-o", tmp_path / "t.csv")
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")
    trace = memrt.debug.Trace(recorded)
    with open(tmp_path / "t.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(trace)
    assert [int(row["live_bytes"]) for row in rows] == trace.live.tolist()
    assert [row["mark"] for row in rows if row["event"] == "mark"] == ["half"]
    inner = [row for row in rows if row["scope"] == "inner" and row["event"] == "alloc"]
    assert len(inner) == 20
    assert {row["bytes"] for row in inner} == {"8000"}
    assert inner[0]["place"].endswith("program.py:6")
    assert (inner[0]["policy"], inner[0]["alignment"]) == ("default", "64")
    times = [float(row["seconds"]) for row in rows]
    assert times == sorted(times)


FORMULAS = ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1"]


def test_csv_names_that_look_like_formulas_stay_text(tmp_path):
    program = f"""
import memrt, numpy as np
for text in {FORMULAS!r}:
    memrt.debug.mark(text)
    with memrt.Policy(name=text), memrt.scope(text):
        np.empty(1000)
exec(compile("kept = np.empty(2000)", "=file.py", "exec"))
"""
    (tmp_path / "program.py").write_text(program)
    assert run_memrt("trace", "-o", "t", "program.py", cwd=tmp_path).returncode == 0
    result = run_memrt("convert", "t", "--to", "csv", "-o", "t.csv", cwd=tmp_path)
    assert (result.returncode, result.stderr) == (0, "")
    with open(tmp_path / "t.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    shown = [f"'{text}" for text in FORMULAS]
    assert [row["mark"] for row in rows if row["event"] == "mark"] == shown
    for column in ("policy", "scope"):
        assert set(shown) <= {row[column] for row in rows}
    assert not [
        row for row in rows if any(cell.startswith(tuple(FORMULAS)) for cell in row.values())
    ]


def test_csv_on_standard_output_survives_a_closed_pipe(recorded):
    result = run_memrt("convert", recorded, "--to", "csv")
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


def test_perfetto_output_parses_with_the_perfetto_schema(recorded, tmp_path):
    result = run_memrt("convert", recorded, "--to", "perfetto", "-o", tmp_path / "t.pftrace")
    assert (result.returncode, result.stderr) == (0, "")
    packets = perfetto_packets(tmp_path / "t.pftrace")
    tracks = {
        packet.track_descriptor.uuid: packet.track_descriptor
        for packet in packets
        if packet.HasField("track_descriptor")
    }
    assert {track.name for track in tracks.values()} >= {"live bytes", "live bytes: inner"}
    trace = memrt.debug.Trace(recorded)
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
        memrt.debug.trace(tmp_path / "t"),
        memrt.testing.fail_allocations(1),
        pytest.raises(MemoryError),
    ):
        memrt.zeros(128)
    result = run_memrt("convert", tmp_path / "t", "--to", "perfetto", "-o", tmp_path / "p")
    assert result.returncode == 0
    names = [packet.track_event.name for packet in perfetto_packets(tmp_path / "p")]
    assert "refused: 1.0 KiB" in names


def test_thinning_keeps_minimum_maximum_and_last_point():
    values = np.random.default_rng(1).integers(0, 10**9, 123_457)
    kept = perfetto_format.thinned(values, 1000)
    assert 500 < len(kept) <= 1000
    assert (np.diff(kept) > 0).all()
    assert values[kept].max() == values.max()
    assert values[kept].min() == values.min()
    assert kept[-1] == len(values) - 1
    assert perfetto_format.thinned(values, 10**6).tolist() == list(range(len(values)))


def test_speedscope_output_matches_its_schema(recorded, tmp_path):
    result = run_memrt("convert", recorded, "--to", "speedscope", "-o", tmp_path / "s.json")
    assert (result.returncode, result.stderr) == (0, "")
    content = json.loads((tmp_path / "s.json").read_text())
    jsonschema.validate(content, SPEEDSCOPE)
    frames, trace = content["shared"]["frames"], memrt.debug.Trace(recorded)
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
    assert frames[largest[0]]["name"] == "<module>", "frames of the program runner must be left out"


def decoded_profile(path):
    """Return a pprof file as its parsed message, and rows of calls, labels and values."""
    return decoded(path.read_bytes())


def total(rows, type):
    return sum(values[type] for _, _, values in rows)


def test_pprof_output_of_a_trace_has_its_sums_by_stack_and_scope(recorded, tmp_path):
    result = run_memrt("convert", recorded, "--to", "pprof", "-o", tmp_path / "t.pb.gz")
    assert (result.returncode, result.stderr) == (0, "")
    profile, rows = decoded_profile(tmp_path / "t.pb.gz")
    trace = memrt.debug.Trace(recorded)
    usage = trace.usage()
    assert total(rows, "inuse_space") == trace.peak
    assert total(rows, "alloc_space") == sum(each.total for each in usage)
    assert total(rows, "alloc_objects") == sum(each.allocations for each in usage)
    calls, labels, values = max(rows, key=lambda row: row[2]["inuse_space"])
    assert calls == [("<module>", "program.py", 3)]
    assert (labels["policy"], "scope" in labels) == ("default", False)
    assert values == {"inuse_space": 800_000, "inuse_objects": 1,
                      "alloc_space": 800_000, "alloc_objects": 1}  # fmt: skip
    (inner,) = [values for _, labels, values in rows if labels.get("scope") == "inner"]
    assert (inner["inuse_space"], inner["inuse_objects"]) == (160_000, 20)
    assert abs(profile.time_nanos / 1e9 - trace.began.timestamp()) < 1e-3
    assert profile.duration_nanos == round(trace.duration * 1e9)


def test_pprof_output_counts_frees_and_resizes_before_the_peak(tmp_path):
    with memrt.debug.trace(tmp_path / "t"), memrt.Policy(name="resized"):
        array = np.empty(1000)
        array.resize(3000, refcheck=False)
        array.resize(2000, refcheck=False)
        del array
        for _ in range(3):
            kept = np.empty(5000)
        del kept
    trace = memrt.debug.Trace(tmp_path / "t")
    with open(tmp_path / "p", "wb") as file:
        pprof_format.write(trace, file)
    _, rows = decoded_profile(tmp_path / "p")
    assert total(rows, "inuse_space") == trace.peak == 80_000
    assert total(rows, "inuse_objects") == 2
    assert total(rows, "alloc_objects") == 4
    assert total(rows, "alloc_space") == 24_000 + 3 * 40_000


def test_pprof_output_of_last_events_has_no_negative_values(script, tmp_path):
    run_memrt("trace", "--last", "15", "-o", "t", script, cwd=tmp_path)
    assert run_memrt("convert", "t", "--to", "pprof", "-o", "p", cwd=tmp_path).returncode == 0
    _, rows = decoded_profile(tmp_path / "p")
    assert all(value >= 0 for _, _, values in rows for value in values.values())


def test_pprof_output_of_a_recording_has_its_peak_and_total(script, tmp_path):
    script.write_text("import os\nos.fork() and os.wait()\n" + PROGRAM)
    options = ["--quiet", "--children", "--native", "2", "--record", "r"]
    assert run_memrt("run", *options, script, "0", cwd=tmp_path).returncode == 0
    assert run_memrt("convert", "r", "--to", "pprof", "-o", "p", cwd=tmp_path).returncode == 0
    profile, rows = decoded_profile(tmp_path / "p")
    assert profile.string_table[profile.mapping[0].filename] == script.name
    documents = loads((tmp_path / "r").read_bytes())
    assert len(documents) == 2
    assert {labels["process"] for _, labels, _ in rows} == {str(each["pid"]) for each in documents}
    for type, column in (("inuse_objects", 2), ("inuse_space", 3)):
        peaks = [row[column] for each in documents for row in each["highest"]["rows"]]
        assert total(rows, type) == sum(peaks)
    for type, column in (("alloc_objects", 1), ("alloc_space", 2)):
        totals = [row[column] for each in documents for row in each["total"]]
        assert total(rows, type) == sum(totals)
    calls, _, values = max(rows, key=lambda row: row[2]["inuse_space"])
    assert values["inuse_space"] == 800_000
    assert calls[-1] == ("<module>", "program.py", 5)
    assert len(calls) == 3
    assert calls[0][1:] != ("", 0), "native calls must name their shared object"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("load at /a b/c.py:12", ("load", "/a b/c.py", 12)),
        ("f at a at b.py:1", ("f", "a at b.py", 1)),
        ("PyObject_Call+0x1f in libpython3.so", ("PyObject_Call", "libpython3.so", 0)),
        ("+0x1f in code", ("+0x1f in code", "code", 0)),
        ("something", ("something", "", 0)),
    ],
)
def test_calls_of_recordings_are_split_into_their_parts(text, expected):
    assert pprof_format._parsed(text) == expected


def test_recording_is_refused_by_formats_of_events(script, tmp_path):
    assert run_memrt("run", "--quiet", "--record", "r", script, cwd=tmp_path).returncode == 0
    result = run_memrt("convert", "r", "--to", "csv", cwd=tmp_path)
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr == (
        "memrt: 'r' is a recording, and --to csv needs an event trace: record a trace with "
        "`python -m memrt trace SCRIPT`\n"
    )
    (tmp_path / "r").write_bytes((tmp_path / "r").read_bytes()[:-20])
    result = run_memrt("convert", "r", "--to", "pprof", cwd=tmp_path)
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.startswith("memrt: cannot read 'r': the recording is truncated")


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (None, "cannot read 't': No such file or directory"),
        (b"", "'t' is empty: record a trace with `python -m memrt trace SCRIPT`"),
        (b"something else entirely", "'t' is not a trace of memrt"),
    ],
)
def test_convert_of_invalid_trace_gives_a_single_line_error(tmp_path, content, says):
    if content is not None:
        (tmp_path / "t").write_bytes(content)
    result = run_memrt("convert", "t", "--to", "csv", cwd=tmp_path)
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.startswith(f"memrt: {says}")
    assert result.stderr.count("\n") == 1


def test_truncated_trace_is_converted_with_a_warning(recorded, tmp_path):
    (tmp_path / "t").write_bytes(recorded.read_bytes()[:-20])
    result = run_memrt("convert", tmp_path / "t", "--to", "csv")
    assert result.returncode == 0
    assert "the trace was cut off" in result.stderr
    assert len(result.stdout.splitlines()) > 10


def test_convert_keeps_an_existing_file_without_force(recorded, tmp_path):
    target = tmp_path / "out.csv"
    target.write_text("precious")
    result = run_memrt("convert", recorded, "--to", "csv", "-o", target)
    assert result.returncode == 2
    assert "exists already" in result.stderr
    assert target.read_text() == "precious"
    assert run_memrt("convert", recorded, "--to", "csv", "-o", target, "--force").returncode == 0
    assert target.read_text().startswith("seconds,")
    assert [path.name for path in tmp_path.iterdir()] == ["out.csv"]


@pytest.mark.parametrize(
    "line", ["convert {} --to csv -o", "convert {} --to speedscope -o", "replay {} --emit-c"]
)
@pytest.mark.parametrize(
    ("target", "says"),
    [
        ("there", "'there' exists already: name another file, or add --force"),
        ("link", "'link': the path is a folder"),
        ("folder", "'folder': the path is a folder"),
        ("/dev/null", "'/dev/null': the path is not a regular file"),
        ("t", "'t' is the input itself"),
    ],
)
def test_bad_output_of_convert_and_replay_is_refused(recorded, tmp_path, line, target, says):
    (tmp_path / "t").write_bytes(recorded.read_bytes())
    (tmp_path / "there").write_text("old")
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to("folder")
    force = ["--force"] if target != "there" else []
    result = run_memrt(*line.format("t").split(), target, *force, cwd=tmp_path)
    assert (result.returncode, result.stdout) == (2, "")
    assert says in result.stderr
    assert (tmp_path / "there").read_text() == "old"
    assert (tmp_path / "t").read_bytes() == recorded.read_bytes()
    assert sorted(os.listdir(tmp_path)) == ["folder", "link", "t", "there"]


@pytest.mark.parametrize("line", ["convert {} --to csv -o out", "replay {} --emit-c out"])
def test_output_through_a_link_replaces_the_target_of_the_link(recorded, tmp_path, line):
    (tmp_path / "file").write_text("old")
    (tmp_path / "out").symlink_to("file")
    result = run_memrt(*line.format(recorded).split(), "--force", cwd=tmp_path)
    assert (result.returncode, result.stderr) == (0, "")
    assert (tmp_path / "out").is_symlink()
    assert (tmp_path / "file").read_text() != "old"
    assert sorted(os.listdir(tmp_path)) == ["file", "out"]


def test_unwritable_output_is_reported(recorded):
    result = run_memrt("convert", recorded, "--to", "csv", "-o", "/no/such/folder/t.csv")
    assert result.returncode == 2
    assert result.stderr.startswith("memrt: cannot write '/no/such/folder/t.csv': No such file")


@pytest.mark.parametrize("form", ["csv", "perfetto", "pprof", "speedscope"])
@pytest.mark.parametrize("previous", [None, "precious"])
def test_failed_convert_leaves_the_folder_unchanged(recorded, tmp_path, form, previous):
    def limit():
        import resource

        resource.setrlimit(resource.RLIMIT_FSIZE, (100, resource.RLIM_INFINITY))

    target = tmp_path / "out"
    if previous is not None:
        target.write_text(previous)
    result = run_memrt("convert", recorded, "--to", form, "-o", target, "--force",
                     preexec_fn=limit)  # fmt: skip
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr == f"memrt: cannot write {str(target)!r}: File too large\n"
    left = {path.name: path.read_text() for path in tmp_path.iterdir()}
    assert left == ({} if previous is None else {"out": previous})


@pytest.mark.parametrize("verb", ["trace", "convert"])
def test_help_has_an_example_and_exit_codes(verb):
    result = run_memrt(verb, "--help")
    assert result.returncode == 0
    assert f"python -m memrt {verb} " in result.stdout
    assert "exit status: " in result.stdout


def at_a_terminal(terminal, items, delay):
    """Return the text that a terminal receives from a progress display."""
    code = (
        "import time\n"
        "from memrt.commands.output.progress import with_progress\n"
        f"for _ in with_progress(range({items}), {items}, 'writing'): time.sleep({delay})\n"
    )
    leader, follower = terminal
    subprocess.run([sys.executable, "-c", code], stderr=follower, check=True)
    os.set_blocking(leader, False)
    try:
        return os.read(leader, 10_000).decode()
    except BlockingIOError:
        return ""


def test_progress_is_shown_on_terminals_for_long_work(pseudo_terminal):
    shown = at_a_terminal(pseudo_terminal, 5, 0.25)
    assert "writing: 20%" in shown
    assert shown.endswith("\r\x1b[K")
    assert at_a_terminal(pseudo_terminal, 5, 0) == ""
    assert list(with_progress(io.StringIO("a\nb\n"), 2, "reading")) == ["a\n", "b\n"]


NO_TERMINALS = """
import os, pty

def refuse():
    raise OSError(2, "No such file or directory")

os.openpty = pty.openpty = pty.fork = refuse
"""


def test_terminal_tests_are_skipped_without_a_terminal(tmp_path):
    (tmp_path / "no_terminals.py").write_text(NO_TERMINALS)
    files = [str(Path(__file__).with_name(f"test_{name}.py")) for name in ("top", "trace_commands")]
    result = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-p",
            "no_terminals",
            *files,
            "-k",
            "keys_sort or long_work",
        ],
        env={**os.environ, "CI": "1", "PYTHONPATH": str(tmp_path)},
        cwd=Path(__file__).parents[3],
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert result.returncode == 0, result.stdout
    assert "2 skipped" in result.stdout
