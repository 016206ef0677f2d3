"""The commands run, info, stats and leaks."""

import json
import os
import re
import signal
import subprocess
import sys
import zipfile

import memrt
import pytest
from gil import GIL_IS_OFF, needs_gil
from memrt.commands.programs import summary

PROGRAM = """
import sys, numpy as np
a = np.ones(100_000)
print(__name__, sys.argv, a.sum())
"""


@pytest.fixture
def script(tmp_path):
    def write(code, name="program.py"):
        path = tmp_path / name
        path.write_text(code)
        return path

    return write


def python(*arguments, **options):
    options = {"capture_output": True, "text": True, "timeout": 60, **options}
    return subprocess.run([sys.executable, *map(str, arguments)], **options)


def run(*arguments, **options):
    return python("-m", "memrt", "run", *arguments, **options)


def test_run_executes_script_and_prints_summary_to_stderr(script):
    result = run(script(PROGRAM), "--its", "-m", "x")
    path = str(script(PROGRAM))
    assert result.stdout == f"__main__ {[path, '--its', '-m', 'x']} 100000.0\n"
    assert result.returncode == 0
    for part in ("policy 'run'", "\n  peak  ", "800,", "blocks allocated", " freed, 0 resized\n"):
        assert part in result.stderr
    assert "requests refused" not in result.stderr
    more = f"more: python -m memrt run --track {path} --its -m x"
    assert result.stderr.splitlines()[-1] == more


def test_run_options_reach_the_policy_and_the_json_file(libc_malloc, script, tmp_path):
    target = tmp_path / "out.json"
    result = run("--alignment", "4096", "--name", "mine", "--track", "--json", target, "--quiet",
                 script("import numpy as np; kept = np.ones(5000)\n"))  # fmt: skip
    assert (result.returncode, result.stderr) == (0, "")
    report = json.loads(target.read_text())
    assert report["policy"] == {"name": "mine", "alignment": 4096}
    assert report["stats"]["live"] >= 40_000
    assert 40_000 in [buffer["nbytes"] for buffer in report["live"]]
    assert set(report["stats"]) == set(memrt.stats().to_dict())
    memory = report["memory"]
    assert set(memory["parts"]) == set(memrt.debug.process_memory().parts())
    assert sum(part["resident"] for part in memory["parts"].values()) == memory["resident"]


def test_json_file_of_a_process_without_a_memory_map_has_null(monkeypatch):
    def refuse():
        raise OSError("no /proc")

    monkeypatch.setattr(memrt.debug, "process_memory", refuse)
    assert summary._memory() is None


CALLS = """
import json, sys
import numpy as np
def outer(): return middle()
def middle(): return inner()
def inner(): return np.empty(5000)
kept = outer()
"""


def calls_of(path, size):
    """Return the recorded calls of the only buffer of a size in a file of `run --json`: native,
    Python.
    """
    live = json.loads(path.read_text())["live"]
    (calls,) = [buffer["calls"] for buffer in live if buffer["nbytes"] == size]
    native = [call for call in calls if "+0x" in call]
    return native, [call for call in calls if "+0x" not in call]


@pytest.mark.parametrize(("frames", "native"), [(1, 0), (2, 0), (0, 3), (2, 3)])
def test_run_records_calls_up_to_frames_and_native_limits(script, tmp_path, frames, native):
    target = tmp_path / "out.json"
    result = run("--track", "--frames", frames, "--native", native, "--json", target,
                 "--quiet", script(CALLS))  # fmt: skip
    assert result.returncode == 0, result.stderr
    natives, calls = calls_of(target, 40_000)
    names = ["inner", "middle", "outer"]
    assert [call.split()[0] for call in calls] == names[:frames]
    assert bool(natives) == bool(native)
    assert len(natives) <= native


def test_run_records_sixteen_python_calls_by_default(script, tmp_path):
    code = (
        "import numpy as np\ndef f(n): return np.empty(5000) if n == 0 else f(n - 1)\nk = f(30)\n"
    )
    target = tmp_path / "out.json"
    assert run("--track", "--json", target, "--quiet", script(code)).returncode == 0
    natives, calls = calls_of(target, 40_000)
    assert (len(natives), len(calls)) == (0, 16)


@needs_gil
def test_leaks_records_native_calls_only_with_native_option(script):
    path = script(LEAVES)
    shown = leaks("--frames", "0", "--native", "8", path).stderr
    assert re.search(r"called from \w*\+0x", shown)
    assert "called from" not in leaks("--frames", "0", path).stderr


FULL = """
import resource, signal, numpy as np
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (100, resource.RLIM_INFINITY))
"""


@pytest.mark.parametrize("option", ["--json", "--record", "--html"])
def test_run_reports_an_output_write_error(script, tmp_path, option):
    target = tmp_path / "out"
    result = run("--quiet", option, target, script(FULL))
    assert result.returncode == 0
    assert result.stderr == f"memrt: cannot write {str(target)!r}: File too large\n"


@pytest.mark.parametrize("option", ["--json", "--record", "--html"])
def test_run_keeps_the_old_file_when_writing_fails(script, tmp_path, option):
    target = tmp_path / "folder" / "out"
    target.parent.mkdir()
    target.write_text("old")
    result = run("--quiet", "--force", option, target, script(FULL))
    assert result.returncode == 0
    assert "cannot write" in result.stderr
    assert [(each.name, each.read_text()) for each in target.parent.iterdir()] == [("out", "old")]


def test_relative_json_path_ignores_a_later_chdir(script, tmp_path):
    path = script("import os; os.mkdir('other'); os.chdir('other')\n")
    assert run("--json", "out.json", path, cwd=tmp_path).returncode == 0
    assert json.loads((tmp_path / "out.json").read_text())["program"] == [str(path)]
    assert not (tmp_path / "other" / "out.json").exists()


@pytest.mark.parametrize(
    ("target", "says"),
    [
        ("there", "exists already: name another file, or add --force"),
        ("folder", "the path is a folder"),
        ("/dev/null", "the path is not a regular file"),
        ("missing/file", "No such file"),
    ],
)
def test_run_refuses_existing_or_unusable_json_targets(script, tmp_path, target, says):
    (tmp_path / "folder").mkdir()
    (tmp_path / "there").write_text("old")
    path = script("print('ran')\n")
    result = run("--json", target, path, cwd=tmp_path)
    assert (result.returncode, result.stdout) == (2, "")
    assert says in result.stderr
    assert (tmp_path / "there").read_text() == "old"
    assert sorted(os.listdir(tmp_path)) == ["folder", "program.py", "there"]


def test_force_replaces_an_existing_json_file(script, tmp_path):
    (tmp_path / "there").write_text("old" * 10_000)
    assert run("--json", "there", "--force", script(""), cwd=tmp_path).returncode == 0
    assert json.loads((tmp_path / "there").read_text())["memrt"] == memrt.__version__


def test_run_refuses_the_same_file_for_json_and_record(script, tmp_path):
    result = run("--json", "x", "--record", "./x", script("print(1)"), cwd=tmp_path)
    assert (result.returncode, result.stdout) == (2, "")
    assert "choose different paths" in result.stderr


def test_run_track_lists_live_buffers_at_the_end(script):
    code = "import numpy as np; kept = np.ones(5000)\nsmall = [np.ones(10) for _ in range(12)]\n"
    lines = run("--track", script(code)).stderr.splitlines()
    assert lines[-4] == "live buffers: 13"
    assert lines[-3].startswith("  39.1 KiB   1  ")
    assert lines[-2].startswith("     960 B  12  ")
    assert lines[-1].startswith("more: python -m memrt run --html report.html ")


@needs_gil
def test_summary_has_the_first_finding_in_at_most_12_lines(script):
    code = (
        "import numpy as np\nkept = [np.arange(1e6)[:3] for _ in range(5)]\n"
        "a = np.ones(9)\nb = np.ones(9)\nc = np.ones(9)\nd = np.ones(9)\n"
        "try:\n    np.empty(2**45)\nexcept MemoryError:\n    pass\n"
    )
    lines = run("--track", script(code), "--html=x").stderr.splitlines()
    assert len(lines) <= 12
    assert lines[0].startswith("memrt: retained (1 of 3): 38.1 MiB of 38.1 MiB live at the end ")
    assert "program.py:2" in lines[0]
    assert lines[1].startswith("  next step: copy the part ")
    assert any("1 requests refused" in line for line in lines)
    assert "the 2 allocation sites with most bytes" in "".join(lines)
    assert lines[-2].startswith("more: python -m memrt retention ")
    assert lines[-1] == (
        "memrt: --html behind the program went to the program: options of memrt precede the program"
    )


LONG = """
import numpy as np
kept = [np.arange(1e6)[:3] for _ in range(5)]
a = np.ones(9)
b = np.ones(9)
c = np.ones(9)
try:
    np.empty(2**45)
except MemoryError:
    pass
"""


@pytest.mark.parametrize(
    ("outputs", "option"),
    [
        (["record"], "--track"),
        (["plot"], "--track"),
        (["record", "html"], "--track"),
        (["record", "html", "plot"], "--track"),
        (["record", "html", "plot"], "--workers"),
    ],
)
def test_summary_and_lines_about_outputs_are_12_lines(script, tmp_path, outputs, option):
    if "plot" in outputs:
        pytest.importorskip("matplotlib")
    targets = [tmp_path / name for name in outputs]
    words = [f"--{target.name}={target}" for target in targets]
    lines = run(*words, option, script(LONG), "--html").stderr.splitlines()
    assert len(lines) == 12
    first = "duplicates (1 of 2)" if GIL_IS_OFF else "retained (1 of 3)"  # retention needs the GIL
    assert lines[0].startswith(f"memrt: {first}: ")
    assert all(any(line.endswith(f" in {target}") for line in lines) for target in targets)


def test_report_needs_no_hint_for_more(script, tmp_path):
    result = run("--record", tmp_path / "file", script("print(1)"))
    assert "more:" not in result.stderr


PEAKING = """
import sys, threading
import numpy as np
threads, size = map(int, sys.argv[1:])
meeting = threading.Barrier(threads)
def work():
    kept = []
    for _ in range(40):
        np.empty(size // 2, "u1")
        kept.append(np.empty(size, "u1"))
    meeting.wait()
workers = [threading.Thread(target=work) for _ in range(threads)]
[worker.start() for worker in workers]
[worker.join() for worker in workers]
"""


@pytest.mark.parametrize(
    ("threads", "size", "options", "mode"),
    [
        (1, 1000, [], None),
        (2, 3000, [], None),
        (8, 1_000_000, [], None),
        (8, 3000, ["--exact-peak"], "bounded"),
        (2, 3000, [], "bounded"),
    ],
)
def test_peak_of_run_is_within_two_percent(script, tmp_path, threads, size, options, mode):
    env = {**os.environ, **({} if mode is None else {"MEMRT_PEAK": mode})}
    file, words = tmp_path / "stats.json", [script(PEAKING), str(threads), str(size)]
    result = run("--json", file, *options, *words, env=env)
    stats = json.loads(file.read_text())["stats"]
    peak, error = stats["peak"], stats["peak_error"]
    assert abs(peak - threads * 40 * size) <= error + 20_000, result.stderr
    if mode is None or options:
        assert error <= (0 if options else peak // 50)
    else:
        assert error >= 2**20


def test_long_program_is_not_repeated_in_the_hint():
    lines = run("-c", "print(1)\n").stderr.splitlines()
    assert lines[-1] == "more: python -m memrt run --track ..."


def test_unknown_and_lonely_options_are_refused_with_a_remedy():
    for arguments, said in (
        (["repot", "x"], "unknown command 'repot': did you mean report?\n"),
        (["zzz"], "unknown command 'zzz'\n"),
        (["run", "--trakc", "x.py"], "unrecognized arguments: --trakc: did you mean --track?\n"),
        (["info", "--jsn=3"], "unrecognized arguments: --jsn=3: did you mean --json?\n"),
        (["info", "x", "y z"], "unrecognized arguments: x 'y z'\n"),
        (["run", "--native", "2", "-c", "1"], "add --track, --html or --record\n"),
        (["run", "--sample", "1K", "-c", "1"], "add --track, --html or --record\n"),
        (["--hlp"], "unknown command"),
    ):
        result = python("-m", "memrt", *arguments)
        assert (result.returncode, result.stdout) == (2, "")
        if arguments != ["--hlp"]:
            assert result.stderr.endswith(said)


def test_trace_and_recording_are_told_apart(script, tmp_path):
    program = script("import numpy as np; np.ones(10)")
    run("--quiet", "--record", tmp_path / "recording", program)
    python("-m", "memrt", "trace", "--quiet", "-o", tmp_path / "trace", program)
    result = python("-m", "memrt", "report", tmp_path / "trace")
    assert result.returncode == 2
    assert "is a trace, not a recording: use `python -m memrt replay`" in result.stderr
    for verb in ("replay", "diff"):
        files = [tmp_path / "recording"] * (2 if verb == "diff" else 1)
        result = python("-m", "memrt", verb, *files)
        assert result.returncode == 2
        assert "is a recording, not a trace: use `python -m memrt report`" in result.stderr


RETAINING = """
import numpy as np
class Index:
    tiles = {}
def load(number):
    return np.ones((200, 100)) * number
for number in range(20):
    Index.tiles[number] = load(number)[:, :2]
other = np.ones(50_000)[:10]
"""


def retention(*arguments, **options):
    return python("-m", "memrt", "retention", *arguments, **options)


def test_trace_has_a_hint_for_misplaced_options(script, tmp_path):
    command = ("-m", "memrt", "trace", "-o", tmp_path / "t", "--force")
    said = python(*command, script("print(1)"), "--last", "--last", "--other").stderr
    assert said.endswith("--last behind the program went to the program: options of memrt precede "
                         "the program\n")  # fmt: skip
    assert python(*command, "--quiet", script("print(1)"), "--last").stderr == ""


@needs_gil
def test_retention_groups_buffers_by_place_and_holder(script):
    result = retention(script(RETAINING), "--track")
    path = script(RETAINING)
    assert result.stderr.splitlines() == [
        "memrt: small views keep 21 buffers at the end: 3.4 MiB would go if the views were copied",
        f"  3.1 MiB in 20 buffers allocated in load at {path}:6",
        "      kept for views of 62.5 KiB",
        "      20 x `__main__.Index.tiles[...]`, through a view",
        "      fix: copy the part where the view is stored, by `.copy()` of the view",
        result.stderr.splitlines()[5],
        "      kept for views of 80 B",
        "      1 x `__main__.other`, through a view",
        "      fix: copy the part where the view is stored, by `.copy()` of the view",
    ]
    assert re.search(r"through numpy/_?core/numeric\.py:", result.stderr.splitlines()[5])


@needs_gil
def test_retention_reports_when_no_view_keeps_a_buffer(script):
    result = retention(script("import numpy as np, sys\nkept = np.ones(100_000)\nsys.exit(3)"))
    said = "memrt: no small view keeps a large buffer at the end\n"
    assert (result.returncode, result.stderr) == (3, said)


@needs_gil
def test_retention_shows_only_the_largest_groups(script):
    code = "import numpy as np\n" + "".join(
        f"v{i} = np.empty({20_000 + i})[:1]\n" for i in range(7)
    )
    result = retention(script(code))
    assert result.stderr.splitlines()[-1] == "  and 312.5 KiB in 2 more groups"


def test_retention_states_why_views_were_not_examined(script):
    code = (
        "import memrt.commands.retention as module\n"
        "def refuse(**_): raise RuntimeError('no search today')\nmodule.retention = refuse\n"
    )
    result = retention(script(code))
    assert result.stderr == "memrt: views were not examined: no search today\n"


def test_forked_child_prints_no_retention(script):
    code = "import os\nif os.fork() == 0:\n    raise SystemExit\nos.wait()\n"
    assert retention(script(code)).stderr.count("memrt:") == 1


def test_run_numba_option_includes_child_processes():
    """Replace install(), because Numba may be absent. tests/numba runs the option with Numba."""
    code = (
        "import memrt.numba\nfrom memrt.commands import main\n"
        "memrt.numba.install = lambda children: print('children:', children)\n"
        "main(['run', '--quiet', '--numba', '-c', ''])\n"
    )
    assert python("-c", code).stdout == "children: True\n"


def facts(tmp_path, *prefix, code, cwd=None, **options):
    """Run a program that prints its view of the interpreter."""
    (tmp_path / "facts.py").write_text(code)
    return python(*prefix, cwd=cwd or tmp_path, **options)


FACTS = """
import sys, threading
main = sys.modules["__main__"]
print(sys.argv, sys.path[0], __name__, __file__, __package__, __spec__ and __spec__.name)
print(vars(main) is globals(), main.__doc__, threading.current_thread().name, input())
"""


@pytest.mark.parametrize("target", [["facts.py"], ["./facts.py"], ["-m", "facts"]])
def test_program_under_run_sees_the_same_interpreter_state(tmp_path, target):
    options = {"code": FACTS, "input": "typed\n"}
    plain = facts(tmp_path, *target, "a", "b", **options)
    ours = facts(tmp_path, "-m", "memrt", "run", "--quiet", *target, "a", "b", **options)
    assert plain.returncode == 0
    assert (ours.stdout, ours.stderr) == (plain.stdout, plain.stderr)


def test_run_executes_folders_and_zip_files_like_python(tmp_path):
    folder = tmp_path / "app"
    folder.mkdir()
    code = "import sys, helper; print(sys.argv, sys.path[0], __name__, helper.value)\n"
    (folder / "__main__.py").write_text(code)
    (folder / "helper.py").write_text("value = 7\n")
    with zipfile.ZipFile(tmp_path / "app.zip", "w") as archive:
        for file in folder.iterdir():
            if file.is_file():
                archive.write(file, file.name)
    for target in (folder, tmp_path / "app.zip"):
        plain, ours = python(target, "x"), run("--quiet", target, "x")
        assert plain.returncode == 0
        assert (ours.stdout, ours.returncode) == (plain.stdout, 0)


ENDINGS = {
    "normally": ("pass", 0),
    "sys.exit(3)": ("import sys; sys.exit(3)", 3),
    "sys.exit(None)": ("import sys; sys.exit()", 0),
    "sys.exit with a text": ("import sys; sys.exit('why')", 1),
    "SystemExit(True)": ("raise SystemExit(True)", 1),
    "an exception": ("def f(): return 1 / 0\nf()", 1),
    "a chained exception": ("try:\n 1 / 0\nexcept Exception as e:\n raise KeyError('k') from e", 1),
    "a syntax error": ("def f(:\n", 1),
    "an exception inside exec": ("exec('raise ValueError(5)')", 1),
    "a custom excepthook": (
        "import sys\nsys.excepthook = lambda t, e, tb: print(t, tb.tb_lineno, tb.tb_next)\n1 / 0",
        1,
    ),
    "Ctrl-C": (  # background test runs inherit an ignored SIGINT
        "import os, signal\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "os.kill(os.getpid(), signal.SIGINT)\ninput()",
        -signal.SIGINT,
    ),
    "a missing import": ("import no_such_module_anywhere", 1),
}


@pytest.mark.parametrize("ending", ENDINGS)
def test_run_keeps_status_and_errors_and_prints_the_summary(ending, script):
    code, status = ENDINGS[ending]
    path = script(code)
    plain, ours = python(path, stdin=subprocess.PIPE), run("--quiet", path, stdin=subprocess.PIPE)
    assert (ours.returncode, ours.stdout) == (status, plain.stdout)
    assert plain.returncode == status
    assert ours.stderr == plain.stderr
    loud = run(path, stdin=subprocess.PIPE)
    assert loud.stderr.startswith(plain.stderr)
    assert "blocks allocated" in loud.stderr


def test_run_reports_a_missing_module_like_python(tmp_path):
    plain = python("-m", "no_such_module", cwd=tmp_path)
    ours = run("--quiet", "-m", "no_such_module", cwd=tmp_path)
    assert (ours.returncode, ours.stderr) == (plain.returncode, plain.stderr)


def test_summary_comes_after_threads_and_exit_functions(script):
    code = """
import atexit, sys, threading, numpy as np
release = threading.Event()
def late():
    release.wait()
    print("thread", np.ones(1000).sum(), file=sys.stderr, flush=True)
threading.Thread(target=late).start()
atexit.register(lambda: print("atexit", file=sys.stderr, flush=True))
release.set()
"""
    lines = run(script(code)).stderr.splitlines()
    assert lines[:2] == ["thread 1000.0", "atexit"]
    assert lines[2].startswith("memrt ")


def test_forked_child_prints_no_summary(script):
    code = "import os\npid = os.fork()\nif pid: os.waitpid(pid, 0)\n"
    result = run(script(code), env={**os.environ, "PYTHONWARNINGS": "ignore"})
    assert result.stderr.count("blocks allocated") == 1


def test_run_reaches_threads_of_the_program(script):
    code = (
        "import memrt, numpy as np, concurrent.futures as f\n"
        "with f.ThreadPoolExecutor(2) as e:\n"
        "    print(e.submit(lambda: memrt.handler_name(np.ones(3))).result())\n"
    )
    assert run(script(code)).stdout == "memrt:run\n"


@pytest.mark.parametrize("prepare", ["missing", "folder", "unreadable"])
def test_unreadable_script_prints_a_single_line_and_exits_2(prepare, tmp_path):
    target = tmp_path / "x"
    if prepare == "folder":
        target.mkdir()
    elif prepare == "unreadable":
        target = tmp_path / "x" / "y.py"
        (tmp_path / "x").write_text("")
    result = run(target)
    assert result.returncode == 2
    assert result.stderr.startswith("memrt: cannot run ")
    assert len(result.stderr.splitlines()) == 1
    assert str(target) in result.stderr


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        ([], "no program to run"),
        (["-m"], "name of a module"),
        (["--alignment", "3", "-m", "this"], "power of two"),
        (["--name", "x" * 64, "-m", "this"], "63 bytes"),
        (["--json", "/no/such/folder/file", "-m", "this"], "/no/such/folder/file"),
        (["--alignment", "many", "-m", "this"], "invalid int"),
        (["--sample", "1K", "-m", "this"], "add --track"),
        (["--native", "8", "-m", "this"], "add --track"),
        (["--no-such-option", "x.py"], "--no-such-option"),
    ],
)
def test_invalid_arguments_exit_with_2_before_the_program(arguments, part):
    result = run(*arguments)
    assert (result.returncode, result.stdout) == (2, "")
    assert part in result.stderr
    assert "Traceback" not in result.stderr


def test_info_shows_versions_library_and_options():
    result = python("-m", "memrt", "info")
    assert result.returncode == 0
    assert memrt.__version__ in result.stdout
    assert memrt.get_library() in result.stdout
    assert "\n\nOptions, as environment variables:\n" in result.stdout
    for option in memrt.debug.options():
        assert option.name in result.stdout
        assert option.help in result.stdout
    tracked = {**os.environ, "MEMRT_TRACK": "1"}
    facts = json.loads(python("-m", "memrt", "info", "--json", env=tracked).stdout)
    assert facts["memrt"] == memrt.__version__
    assert (facts["statistics"], facts["tracking"]) == ("on", "on")
    assert [o["name"] for o in facts["options"]] == [o.name for o in memrt.debug.options()]


def test_stats_explains_every_number():
    result = python("-m", "memrt", "stats")
    rows = [line.split() for line in result.stdout.splitlines()]
    assert [row[0] for row in rows[1:]] == list(memrt.stats().to_dict())
    assert all(len(row) > 4 for row in rows[1:])
    assert json.loads(python("-m", "memrt", "stats", "--json").stdout)["alloc"] == 0


@pytest.mark.parametrize("verb", ["", "run", "info", "config", "stats"])
def test_help_shows_examples(verb):
    result = python("-m", "memrt", *verb.split(), "--help")
    assert result.returncode == 0
    assert "examples:\n  " in result.stdout
    assert "python -m memrt" in result.stdout


def test_missing_command_shows_usage_and_exits_with_2():
    result = python("-m", "memrt")
    assert result.returncode == 2
    assert "usage: python -m memrt" in result.stderr


@pytest.mark.parametrize("verb", ["info", "stats"])
def test_closed_pipe_on_stdout_is_not_an_error(verb):
    reader, writer = os.pipe()
    os.close(reader)
    result = subprocess.run(
        [sys.executable, "-m", "memrt", verb],
        stdout=writer,
        stderr=subprocess.PIPE,
        timeout=60,
        check=False,
    )
    os.close(writer)
    assert (result.returncode, result.stderr) == (0, b"")


# --- leaks. ---

LEAVES = """
import ctypes
import numpy as np

CACHE = {"x": np.ones(1000)}
lost = np.ones(2000)
ctypes.pythonapi.Py_IncRef(ctypes.py_object(lost))
del lost
"""


def leaks(*arguments):
    return python("-m", "memrt", "leaks", *arguments)


@needs_gil
def test_leaks_prints_lost_buffers_and_holders_of_the_rest(script):
    path = script(LEAVES)
    result = leaks(path)
    assert (result.returncode, result.stdout) == (0, "")
    lines = result.stderr.splitlines()
    assert lines[0] == "memrt: lost: 1 buffer, 15.6 KiB, held by no Python object"
    assert lines[1] == f"  15.6 KiB in 1 buffer allocated in <module> at {path}:6"
    assert "memrt: held at the end: 1 buffer, 7.8 KiB" in lines
    assert lines[-2].endswith("__main__.CACHE['x']")
    assert lines[-1].startswith("      fix: remove unused entries, ")
    assert sum(line.startswith("      fix: find the missing release") for line in lines) == 1
    assert "commands" not in result.stderr  # no frame shows how memrt started the program


NAMED = """
import memrt
import probe

buffer = memrt.alloc(3000)
probe.hold_as(buffer, "loader", 1)
del buffer
"""


@needs_gil
def test_leaks_counts_named_c_references_as_holders(run_program, probe, script):
    command = (sys.executable, "-m", "memrt", "leaks", "--fail")
    result = run_program(*command, script(NAMED))
    assert "memrt: lost" not in result.stderr
    lines = result.stderr.splitlines()
    assert lines[0] == "memrt: held at the end: 1 buffer, 2.9 KiB"
    assert lines[-2].endswith("C reference 'loader'")
    assert lines[-1] == "      fix: release the named reference in the C code"
    two = NAMED.replace(
        "buffer = memrt.alloc(3000)\n", "for buffer in memrt.alloc(3000), memrt.alloc(3000):\n"
    )
    two = two.replace("probe.hold_as", "    probe.hold_as")
    assert "a named reference of C code" in run_program(*command, script(two)).stderr
    unnamed = script(NAMED.replace('hold_as(buffer, "loader", 1)', "hold(buffer)"))
    result = run_program(*command, unnamed, check=False)
    assert result.returncode == 23
    assert result.stderr.startswith("memrt: lost: 1 buffer, 2.9 KiB")


@needs_gil
def test_leaks_fail_exits_with_23_only_for_lost_buffers(script):
    assert leaks("--fail", script(LEAVES)).returncode == 23
    held = script("import numpy as np\nkept = np.ones(10)\n")
    assert leaks("--fail", held).returncode == 0


ENDS = """
import atexit, ctypes, os, sys, tempfile, threading, weakref
from pathlib import Path

folder = Path(sys.argv[1])
unflushed = open(folder / "unflushed", "w")
unflushed.write("kept")
temporary = tempfile.TemporaryDirectory(dir=folder)
ctypes.CDLL(None).printf(b"C stdio\\n")

def say(word, pid=os.getpid, owner=os.getpid(), write=os.write,
        file=os.open(folder / "said", os.O_CREAT | os.O_WRONLY | os.O_APPEND)):
    if pid() == owner:  # a forked child is not the program
        write(file, word + b" ")

class Module:
    def __del__(self, say=say):
        say(b"teardown")

last = Module()
atexit.register(say, b"atexit")
weakref.finalize(temporary, say, b"finalize")

def late():
    threading.main_thread().join()
    atexit.register(say, b"late")
    say(b"thread")

threading.Thread(target=late).start()
"""
ENDINGS_OF_LEAKS = {
    "": 23,
    "sys.exit()\n": 23,
    "sys.exit(0)\n": 23,
    "sys.exit(7)\n": 7,
    "import os\nif os.fork() == 0: sys.exit(0)\nsys.exit(os.wait()[1])\n": 23,
}


@pytest.mark.parametrize("ending", ENDINGS_OF_LEAKS)
def test_leaks_fail_ends_the_interpreter_normally(script, tmp_path, ending):
    folders = [tmp_path / name for name in ("plain", "ours")]
    path = script(LEAVES + ENDS + ending)
    for folder in folders:
        folder.mkdir()
    plain, ours = python(path, folders[0]), leaks("--fail", path, folders[1])
    assert ours.returncode == ENDINGS_OF_LEAKS[ending]
    assert ours.stdout == plain.stdout
    assert "C stdio" in ours.stdout
    assert ours.stderr.count("lost: ") == 1
    shown = [{each.name: each.read_text() for each in folder.iterdir()} for folder in folders]
    assert shown[1] == shown[0]
    assert shown[1]["unflushed"] in ("kept", "keptkept")  # a forked child may flush a copy
    assert sorted(shown[1]["said"].split()) == ["atexit", "finalize", "late", "teardown", "thread"]


def test_leaks_fail_keeps_the_data_of_coverage(script, tmp_path):
    path = script(LEAVES)
    coverage = f"-m coverage run --data-file={tmp_path / 'data'}".split()
    for command in (
        [*coverage, "-m", "memrt", "leaks", "--fail", path],
        ["-m", "memrt", "leaks", "--fail", *coverage, path],
    ):
        assert python(*command).returncode == 23
        report = python("-m", "coverage", "report", f"--data-file={tmp_path / 'data'}")
        assert re.search(rf"{path.name} +\d+ +0 +100%", report.stdout), report.stdout
        (tmp_path / "data").unlink()


def test_leaks_fail_hides_memrt_frames_from_exit_functions(script):
    code = "import atexit, sys\natexit.register(lambda: print(sys._getframe().f_back))\n"
    failing = "atexit.register(lambda: 1 / 0)\n"
    result = leaks("--fail", script(LEAVES + code + failing))
    assert (result.returncode, result.stdout) == (23, "None\n")
    assert "ZeroDivisionError" in result.stderr
    assert "commands" not in result.stderr


def test_leaks_fail_survives_ctrl_c_during_thread_join(script):
    code = """
import _thread, signal, threading
signal.signal(signal.SIGINT, signal.default_int_handler)
ends = threading.Event()
def late():
    threading.main_thread().join()
    signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
    ends.wait(50)
threading.Thread(target=late).start()
import atexit
atexit.register(ends.set)
"""
    path = script(LEAVES + code)
    plain, ours = python(path), leaks("--fail", path)
    assert plain.returncode == 0
    assert ours.returncode == 23
    assert "KeyboardInterrupt" in ours.stderr
    assert "commands" not in ours.stderr


def test_leaks_keeps_the_exit_status_of_a_failed_program(script):
    assert leaks("--fail", script(LEAVES + "raise SystemExit(7)\n")).returncode == 7
    result = leaks("--fail", script(LEAVES + "raise KeyError('mine')\n"))
    assert result.returncode == 1
    assert "KeyError: 'mine'" in result.stderr


LOSE = """
import ctypes
import numpy as np

def lose(size):
    array = np.ones(size)
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(array))

"""


@needs_gil
def test_leaks_examines_more_than_a_hundred_lost_buffers(script):
    path = script(LOSE + "for _ in range(150):\n    lose(1000)\n")
    result = leaks(path)
    lines = result.stderr.splitlines()
    assert lines[0] == "memrt: lost: 150 buffers, 1.1 MiB, held by no Python object"
    assert "held at the end" not in result.stderr


@needs_gil
def test_leaks_fail_finds_a_small_lost_buffer_among_held_buffers(script):
    path = script(LOSE + "kept = [np.ones(5000) for _ in range(101)]\nlose(10)\n")
    result = leaks("--fail", path)
    assert result.returncode == 23
    assert "memrt: lost: 1 buffer, 80 B, held by no Python object" in result.stderr
    assert "memrt: held at the end: 101 buffers, 3.9 MiB" in result.stderr


@needs_gil
def test_leaks_groups_held_buffers_by_reference_path(script):
    path = script("""
import numpy as np

INDEX, OTHER = {}, []

class Item:
    pass

def make():
    return np.ones(100_000)

for number in range(100):
    if number == 50:
        OTHER.append(make())
    else:
        INDEX[number] = make()[:4]
ITEMS = [Item() for _ in range(20)]
for item in ITEMS:
    item.data = np.ones(5000)
    item.pair = (1, [item.data])
del item
EMPTY = [make()[:0] for _ in range(3)]
""")
    lines = [line.strip() for line in leaks(path).stderr.splitlines()]
    assert "99 x `__main__.INDEX[...]`, through a view of 32 B" in lines
    assert "3 x `__main__.EMPTY[...]`, through a view of 0 B" in lines
    assert "1 x `__main__.OTHER[...]`" in lines
    assert "views of 3.1 KiB keep 102 buffers of 77.8 MiB: see `python -m memrt retention`" in lines
    assert "20 x `__main__.ITEMS[...].data` and `__main__.ITEMS[...].pair[...][...]`" in lines


def test_leaks_reports_unexamined_buffers_as_maybe_lost(script):
    path = script("""
import memrt
from memrt.commands import leaks
import numpy as np

def fails(buffers):
    raise MemoryError("no room for the search")

leaks.Survey = fails
kept = [np.ones(1000), np.ones(1000)]
""")
    result = leaks("--fail", path)
    assert result.returncode == 23
    lines = result.stderr.splitlines()
    assert lines[0] == (
        "memrt: not examined, may be lost: 2 buffers, 15.6 KiB (no room for the search)"
    )
    assert "held at the end" not in result.stderr


def test_leaks_reports_when_nothing_is_live_at_the_end(script):
    result = leaks(script("import numpy as np\nprint(np.ones(10).sum())\n"))
    assert (result.stdout, result.stderr) == ("10.0\n", "memrt: nothing is live at the end\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "no program to run"),
        (("missing.py",), "no such file"),
        (("--frames", "999", "x.py"), "no such file"),
    ],
)
def test_leaks_without_a_program_file_exits_with_2(arguments, message):
    result = leaks(*arguments)
    assert result.returncode == 2
    assert message in result.stderr
