"""The command line: run, info, stats."""

import json
import os
import signal
import subprocess
import sys
import zipfile

import memrt
import pytest

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


def test_a_script_runs_on_memrt_and_a_summary_follows_on_stderr(script):
    result = run(script(PROGRAM), "--its", "-m", "x")
    path = str(script(PROGRAM))
    assert result.stdout == f"__main__ {[path, '--its', '-m', 'x']} 100000.0\n"
    assert result.returncode == 0
    for part in ("policy 'run'", "peak", "800,", "blocks made", "requests refused"):
        assert part in result.stderr


def test_options_reach_the_policy_and_the_json_file(script, tmp_path):
    target = tmp_path / "out.json"
    result = run("--alignment", "4096", "--name", "mine", "--track", "--json", target, "--quiet",
                 script("import numpy as np; kept = np.ones(5000)\n"))  # fmt: skip
    assert (result.returncode, result.stderr) == (0, "")
    report = json.loads(target.read_text())
    assert report["policy"] == {"name": "mine", "alignment": 4096}
    assert report["stats"]["live"] >= 40_000
    assert 40_000 in [buffer["size"] for buffer in report["live"]]
    assert set(report["stats"]) == set(memrt.stats().to_dict())


def test_tracking_lists_what_is_left_at_the_end(script):
    result = run("--track", script("import numpy as np; kept = np.ones(5000)\n"))
    assert "live buffers: 1\n" in result.stderr
    assert "39.1 KiB" in result.stderr


def facts(tmp_path, *prefix, code, cwd=None, **options):
    """What a program sees of the interpreter."""
    (tmp_path / "facts.py").write_text(code)
    return python(*prefix, cwd=cwd or tmp_path, **options)


FACTS = """
import sys, threading
main = sys.modules["__main__"]
print(sys.argv, sys.path[0], __name__, __file__, __package__, __spec__ and __spec__.name)
print(vars(main) is globals(), main.__doc__, threading.current_thread().name, input())
"""


@pytest.mark.parametrize("target", [["facts.py"], ["./facts.py"], ["-m", "facts"]])
def test_a_program_sees_what_it_would_see_without_memrt(tmp_path, target):
    options = {"code": FACTS, "input": "typed\n"}
    plain = facts(tmp_path, *target, "a", "b", **options)
    ours = facts(tmp_path, "-m", "memrt", "run", "--quiet", *target, "a", "b", **options)
    assert plain.returncode == 0
    assert (ours.stdout, ours.stderr) == (plain.stdout, plain.stderr)


def test_folders_and_zip_files_run_as_python_runs_them(tmp_path):
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
    "exec of its own": ("exec('raise ValueError(5)')", 1),
    "an excepthook of its own": (
        "import sys\nsys.excepthook = lambda t, e, tb: print(t, tb.tb_lineno, tb.tb_next)\n1 / 0",
        1,
    ),
    "Ctrl-C": (  # where the tests run in the background, SIGINT is ignored by inheritance
        "import os, signal\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "os.kill(os.getpid(), signal.SIGINT)\ninput()",
        -signal.SIGINT,
    ),
    "a missing import": ("import no_such_module_anywhere", 1),
}


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_program_ends_as_without_memrt_and_the_summary_still_comes(ending, script):
    code, status = ENDINGS[ending]
    path = script(code)
    plain, ours = python(path, stdin=subprocess.PIPE), run("--quiet", path, stdin=subprocess.PIPE)
    assert (ours.returncode, ours.stdout) == (status, plain.stdout)
    assert plain.returncode == status
    assert ours.stderr == plain.stderr
    loud = run(path, stdin=subprocess.PIPE)
    assert loud.stderr.startswith(plain.stderr)
    assert "blocks made" in loud.stderr


def test_modules_that_do_not_exist_are_reported_by_python_itself(tmp_path):
    plain = python("-m", "no_such_module", cwd=tmp_path)
    ours = run("--quiet", "-m", "no_such_module", cwd=tmp_path)
    assert (ours.returncode, ours.stderr) == (plain.returncode, plain.stderr)


def test_threads_and_exit_functions_come_before_the_summary(script):
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


def test_a_forked_child_prints_no_summary(script):
    code = "import os\npid = os.fork()\nif pid: os.waitpid(pid, 0)\n"
    result = run(script(code), env={**os.environ, "PYTHONWARNINGS": "ignore"})
    assert result.stderr.count("blocks made") == 1


def test_threads_of_the_program_are_on_memrt(script):
    code = (
        "import memrt, numpy as np, concurrent.futures as f\n"
        "with f.ThreadPoolExecutor(2) as e:\n"
        "    print(e.submit(lambda: memrt.handler_name(np.ones(3))).result())\n"
    )
    assert run(script(code)).stdout == "memrt:run\n"


@pytest.mark.parametrize("prepare", ["missing", "folder", "unreadable"])
def test_a_script_that_cannot_be_read_is_one_sentence_and_status_2(prepare, tmp_path):
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
        ([], "nothing to run"),
        (["-m"], "name of a module"),
        (["--alignment", "3", "-m", "this"], "power of two"),
        (["--name", "x" * 64, "-m", "this"], "63 bytes"),
        (["--json", "/no/such/folder/file", "-m", "this"], "/no/such/folder/file"),
        (["--alignment", "many", "-m", "this"], "invalid int"),
        (["--no-such-option", "x.py"], "--no-such-option"),
    ],
)
def test_arguments_that_make_no_sense_end_with_status_2_before_the_program(arguments, part):
    result = run(*arguments)
    assert (result.returncode, result.stdout) == (2, "")
    assert part in result.stderr
    assert "Traceback" not in result.stderr


def test_info_shows_versions_library_and_options():
    result = python("-m", "memrt", "info")
    assert result.returncode == 0
    assert memrt.__version__ in result.stdout
    assert memrt.get_library() in result.stdout
    for option in memrt.options():
        assert option.name in result.stdout
        assert option.help in result.stdout
    facts = json.loads(python("-m", "memrt", "info", "--json").stdout)
    assert facts["memrt"] == memrt.__version__
    assert facts["statistics"] == "on"
    assert [o["name"] for o in facts["options"]] == [o.name for o in memrt.options()]


def test_stats_explains_every_number():
    result = python("-m", "memrt", "stats")
    rows = [line.split() for line in result.stdout.splitlines()]
    assert [row[0] for row in rows[1:]] == list(memrt.stats().to_dict())
    assert all(len(row) > 4 for row in rows[1:])
    assert json.loads(python("-m", "memrt", "stats", "--json").stdout)["alloc"] == 0


@pytest.mark.parametrize("verb", ["", "run", "info", "stats"])
def test_help_shows_examples(verb):
    result = python("-m", "memrt", *verb.split(), "--help")
    assert result.returncode == 0
    assert "examples:\n  " in result.stdout
    assert "python -m memrt" in result.stdout


def test_no_command_is_an_error_that_shows_the_usage():
    result = python("-m", "memrt")
    assert result.returncode == 2
    assert "usage: python -m memrt" in result.stderr


@pytest.mark.parametrize("verb", ["info", "stats"])
def test_a_reader_that_goes_away_is_no_error(verb):
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


def test_leaks_tells_what_is_lost_and_who_holds_the_rest(script):
    path = script(LEAVES)
    result = leaks(path)
    assert (result.returncode, result.stdout) == (0, "")
    lines = result.stderr.splitlines()
    assert lines[0] == "memrt: lost: 1 buffer, 15.6 KiB, held by no Python object"
    assert lines[1] == f"  15.6 KiB in 1 buffer born in <module> at {path}:6"
    assert "memrt: held at the end: 1 buffer, 7.8 KiB" in lines
    assert lines[-1].endswith("__main__.CACHE['x']")
    assert "commands" not in result.stderr  # how memrt started the program is no news


def test_leaks_fails_where_it_is_asked_to_and_something_is_lost(script):
    assert leaks("--fail", script(LEAVES)).returncode == 23
    held = script("import numpy as np\nkept = np.ones(10)\n")
    assert leaks("--fail", held).returncode == 0


def test_leaks_keeps_the_status_of_a_program_that_failed(script):
    assert leaks("--fail", script(LEAVES + "raise SystemExit(7)\n")).returncode == 7
    result = leaks("--fail", script(LEAVES + "raise KeyError('mine')\n"))
    assert result.returncode == 1
    assert "KeyError: 'mine'" in result.stderr


def test_leaks_says_that_nothing_is_left(script):
    result = leaks(script("import numpy as np\nprint(np.ones(10).sum())\n"))
    assert (result.stdout, result.stderr) == ("10.0\n", "memrt: nothing is live at the end\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "nothing to run"),
        (("missing.py",), "no such file"),
        (("--frames", "999", "x.py"), "no such file"),
    ],
)
def test_leaks_says_what_is_wrong_with_its_arguments(arguments, message):
    result = leaks(*arguments)
    assert result.returncode == 2
    assert message in result.stderr
