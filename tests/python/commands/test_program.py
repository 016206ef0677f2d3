"""Programs under `run`, `trace` and `leaks` see the same interpreter as under plain Python."""

from __future__ import annotations

import argparse
import os
import shlex
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest
from memrt import _memrt
from memrt.commands import run
from memrt.commands.programs.program import split_words

pytestmark = pytest.mark.slow

SHOW = """
import atexit, inspect, sys, threading, traceback, warnings

def show(when):
    main = sys.modules["__main__"]
    print(when, [name for name in vars(main) if not name.islower() or name.startswith("__")])
    for name in ("__name__", "__doc__", "__package__", "__annotations__", "__file__", "__cached__"):
        print(" ", name, getattr(main, name, "missing"))
    print("  loader", getattr(main.__loader__, "__name__", None), type(main.__loader__))
    spec = main.__spec__
    print("  spec", spec and (spec.name, spec.origin, spec.parent, spec.cached))
    print("  main", vars(main) is globals(), main.__builtins__ is sys.modules["builtins"])
    print("  path", sys.argv, sys.path[0], sys.path.count(sys.path[0]))
    print("  stack", [(f.filename, f.lineno, f.function) for f in inspect.stack()])
    print("  thread", threading.current_thread() is threading.main_thread())
    print("  hook", sys.excepthook is sys.__excepthook__, flush=True)

show("now")
atexit.register(show, "at exit")
traceback.print_stack()
warnings.warn("seen from outside", stacklevel=9)
"""
HOOK = """
def hook(kind, error, tb):
    show("in the hook")
    print(kind, error, tb and tb.tb_lineno, error.__traceback__ is tb, sys.last_traceback is tb)
sys.excepthook = hook
"""
FAILS = "def f():\n    raise KeyError('mine')\nf()\n"
READS = "\nprint('input', sys.stdin.read())\n"


def write_files(folder):
    """Write the programs that the cases run."""
    sources = {
        "facts.py": SHOW + READS,
        "fails.py": SHOW + FAILS,
        "hooked.py": SHOW + HOOK + FAILS,
        "hooked_exit.py": SHOW + HOOK + "sys.exit('why')\n",
        "chained.py": "try:\n    1 / 0\nexcept Exception as error:\n"
        "    raise KeyError() from error\n",
        "exits.py": SHOW + "sys.exit('why')\n",
        "exits_7.py": SHOW + "sys.exit(7)\n",
        "exits_group.py": "raise SystemExit([1, 'two'])\n",
        "syntax.py": "a = 1\ndef f(:\n",
        "null.py": "a = 1\0\n",
        "coding.py": "# -*- coding: no-such-coding -*-\n",
        "future.py": "def f(a: undefined): pass\nx: int = 3\nprint(f.__annotations__)\n",
        "recursion.py": "def f(): f()\nf()\n",
        "no_newline.py": "print(1)\nif 1:\n  print(2)",
        "interrupted.py": "import os, signal\nsignal.signal(2, signal.default_int_handler)\n"
        "os.kill(os.getpid(), 2)\ninput()\n",
        "interrupted_2.py": "raise KeyboardInterrupt\n",
        "no_hook.py": "import sys\ndel sys.excepthook\nsys.exit(3)\n",
        "removed_main.py": "import sys\ndel sys.modules['__main__']\nprint(len(sys.modules) > 9)\n",
        "late.py": "import threading, sys\ndef late():\n    threading.main_thread().join()\n"
        "    print(hasattr(sys.modules['__main__'], '__file__'))\n"
        "threading.Thread(target=late).start()\n",
        "folder/__main__.py": "import beside\n" + SHOW + FAILS,
        "folder/beside.py": "print('beside')\n",
        "package/__init__.py": "import sys; print('package', sys.argv)\n",
        "package/__main__.py": SHOW,
        "package/module.py": '"""Doc."""\n' + SHOW + FAILS,
        "package/relative.py": "from . import module\n",
        "broken/__init__.py": "import no_such_module_anywhere\n",
        "broken/__main__.py": "",
        "empty/__init__.py": "",
        "sub/linked.py": SHOW,
        "spaces in/a name.py": SHOW,
        "spawned.py": "import multiprocessing as m, sys\n"
        "def f(): print(sys.argv, __name__, flush=True)\n"
        "if __name__ == '__main__':\n    p = m.get_context('spawn').Process(target=f)\n"
        "    p.start(); p.join(); print(p.exitcode)\n",
    }
    for name, source in sources.items():
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(source.encode())
    (folder / "link.py").symlink_to("sub/linked.py")
    (folder / "latin.py").write_bytes(b"# -*- coding: latin-1 -*-\nprint(ascii('\xe9'))\n")
    with zipfile.ZipFile(folder / "app.zip", "w") as archive:
        archive.write(folder / "folder/__main__.py", "__main__.py")
        archive.write(folder / "folder/beside.py", "beside.py")
    compile_to = "import py_compile; py_compile.compile('sub/linked.py', cfile={!r})"
    (folder / "compiled").mkdir()
    for target in ("bytecode.pyc", "bytecode.bin", "compiled/__main__.pyc"):
        subprocess.run([sys.executable, "-c", compile_to.format(target)], cwd=folder, check=True)
    (folder / "bad.pyc").write_bytes(b"no bytecode at all")


LINES = """
facts.py
./facts.py a b
sub/../facts.py
facts.py -m x -c y
facts.py -- a -- b
-- facts.py a
'spaces in/a name.py' 'b c'
fails.py
hooked.py
hooked_exit.py
chained.py
exits.py
exits_7.py
exits_group.py
syntax.py
null.py
coding.py
latin.py
future.py
recursion.py
no_newline.py
interrupted.py
interrupted_2.py
no_hook.py
removed_main.py
late.py
link.py
bytecode.pyc
bytecode.bin a
bad.pyc
spawned.py a
folder a -- b
folder/
./folder
compiled a
app.zip
app.zip -- a
-m package a
-m package -- a -- b
-mpackage a
-m package.module --quiet --json x
-m package.relative
-m package.missing
-m missing
-m missing.module
-m broken
-m empty
-m facts -m a
-m no/such
-m app.zip
-m spawned
-c print(1) a
'-cimport sys; print(sys.argv)' a -- b
-c 1/0
-c a=(
-c 'raise KeyboardInterrupt'
-
- a -- b
/dev/stdin a
"""
CASES = {line: shlex.split(line) for line in LINES.strip().splitlines()}
CASES["absolute"] = ["{}/facts.py", "a"]
CASES["code with facts"] = ["-c", SHOW + READS, "a"]
CASES["code that fails"] = ["-c", SHOW + FAILS, "--", "a"]
CASES["code with a null byte's escape"] = ["-c", "print('\\0')"]
READ_FROM_INPUT = ("-", "- a -- b", "/dev/stdin a")
INTERPRETER = {
    "facts.py": ["-I"],
    "-m package a": ["-I"],
    "folder a -- b": ["-I"],
    "- a -- b": ["-I"],
    "late.py": ["-E"],
    "fails.py": ["-X", "dev"],
    "-m package.module": ["-O"],
}
PASSED_ON = ("-m package -- a -- b", "facts.py -- a -- b", "-c print(1) a", "-")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("programs")
    write_files(path)
    return path


def outcome(folder, *arguments, flags=(), source="typed\n", **options):
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    if source is not None:
        options["input"] = source
    result = subprocess.run(
        [sys.executable, *flags, *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        **options,
    )
    return result.returncode, result.stdout, result.stderr


def in_shell(folder, command):
    result = subprocess.run(
        ["bash", "-c", command], cwd=folder, capture_output=True, text=True, timeout=60
    )
    return result.returncode, result.stdout, result.stderr


def outcomes(folder, arguments, prefix=("run", "--quiet"), **options):
    """Return the outcome of a program under plain Python, and on memrt."""
    arguments = [word.replace("{}", str(folder)) for word in arguments]
    plain = arguments[1:] if arguments[0] == "--" else arguments
    return (
        outcome(folder, *plain, **options),
        outcome(folder, "-m", "memrt", *prefix, *arguments, **options),
    )


@pytest.mark.parametrize("case", CASES)
def test_program_has_the_same_outcome_as_under_plain_python(folder, case):
    source = SHOW + FAILS if case in READ_FROM_INPUT else "typed\n"
    plain, ours = outcomes(folder, CASES[case], source=source)
    assert ours == plain


@pytest.mark.parametrize("case", INTERPRETER)
def test_program_has_the_same_outcome_with_interpreter_options(folder, case):
    arguments = CASES.get(case, case.split())
    plain, ours = outcomes(folder, arguments, flags=INTERPRETER[case], source=SHOW)
    assert ours == plain


@pytest.mark.parametrize("verb", ["trace", "leaks"])
@pytest.mark.parametrize(
    "case", ["-m package -- a -- b", "facts.py -- a -- b", "-c print(1) a", "-"]
)
def test_trace_and_leaks_pass_on_all_arguments(folder, tmp_path, verb, case):
    source = SHOW if case == "-" else "typed\n"
    options = ("-o", tmp_path / "t") if verb == "trace" else ()
    plain, ours = outcomes(folder, CASES[case], (verb, *options), source=source)
    assert ours[:2] == plain[:2]
    assert ours[2].startswith(plain[2])


@pytest.mark.parametrize(
    ("words", "program"),
    [
        (["--alignment", "128", "--name", "-m", "x.py", "--", "-m"], ["x.py", "--", "-m"]),
        (["--align", "128", "--quiet", "-m", "x", "--", "y"], ["-m", "x", "--", "y"]),
        (["--json=x", "--track", "--", "--quiet", "--"], ["--", "--quiet", "--"]),
        (["--n", "128", "x"], ["128", "x"]),
        (["--quiet", "-", "-c"], ["-", "-c"]),
        (["--alignment"], []),
    ],
)
def test_program_arguments_start_after_the_options(words, program):
    reader = argparse.ArgumentParser()
    run.prepare_parser(reader)
    own = words[: len(words) - len(program)]
    assert split_words(reader, words) == (own, program)


@pytest.mark.parametrize(
    "shell", ["{} <(cat fails.py) a", "cat fails.py | {} /dev/stdin a", "cat fails.py | {} - a"]
)
def test_program_is_read_from_a_shell_pipe(folder, shell):
    plain, ours = (
        in_shell(folder, shell.format(f"{sys.executable} {prefix}"))
        for prefix in ("", "-m memrt run --quiet")
    )
    assert ours == plain
    assert "KeyError: 'mine'" in ours[2]


def test_code_runs_in_a_removed_folder(tmp_path):
    removing = f"mkdir x; cd x; rmdir ../x; {sys.executable} {{}} -c 'print(1)' a"
    plain, ours = (
        in_shell(tmp_path, removing.format(prefix)) for prefix in ("", "-m memrt run --quiet")
    )
    assert ours == plain == (0, "1\n", "")


def test_program_from_a_terminal_is_refused(folder, pseudo_terminal):
    _, terminal = pseudo_terminal
    for program in ("-", "/dev/stdin"):
        result = outcome(folder, "-m", "memrt", "run", program, source=None, stdin=terminal)
        assert result[:2] == (2, "")
        assert "must be a file or a pipe, got a terminal" in result[2]


def test_folder_or_archive_without_main_module_is_refused(folder, tmp_path):
    zipfile.ZipFile(tmp_path / "app.zip", "w").close()
    for path in (f"{tmp_path}", f"{tmp_path}/app.zip"):
        result = outcome(folder, "-m", "memrt", "run", path)
        assert result == (2, "", f"memrt: cannot run '{path}': no __main__.py is inside\n")


def test_code_with_undecodable_bytes_is_refused(folder):
    result = outcome(folder, "-m", "memrt", "run", "-c", b"print('\xff')")
    assert result[:2] == (2, "")
    assert result[2].startswith("memrt: cannot decode the code of -c: 'utf-8' codec can't encode")


@pytest.mark.parametrize(
    "command",
    ["run facts.py", "leaks exits_7.py", "retention exits_7.py", "trace -o {} exits_7.py", "run x"],
)
def test_closed_standard_error_keeps_messages_off_the_output(folder, tmp_path, command):
    command = command.format(tmp_path / "trace")
    program = command.split()[-1]
    plain, ours = (
        in_shell(folder, f"{sys.executable} {words} 2>&- </dev/null")
        for words in (program, f"-m memrt {command}")
    )
    assert ours == plain


def test_closed_standard_input_is_refused(folder):
    result = in_shell(folder, f"{sys.executable} -m memrt run - <&-")
    assert result == (2, "", "memrt: cannot run standard input: Bad file descriptor\n")


def test_functions_that_run_programs_refuse_bad_arguments():
    with pytest.raises(OSError, match="Bad file descriptor"):
        _memrt.run_file(1 << 20, "name", {})
    with pytest.raises(TypeError, match="missing required argument 'function'"):
        _memrt.call_outermost()
    with pytest.raises(TypeError):
        _memrt.run_code("code", {})
    with pytest.raises(TypeError):
        _memrt.run_file("x", "name", {})


def test_exception_of_an_outermost_call_reaches_the_caller():
    with pytest.raises(ZeroDivisionError):
        _memrt.call_outermost(divmod, 1, 0)
    assert _memrt.call_outermost(lambda: sys._getframe().f_back) is None
    assert sys._getframe().f_back is not None
    limit = sys.getrecursionlimit()
    _memrt.call_outermost(sys.setrecursionlimit, limit + 50)
    sys.setrecursionlimit(limit)


def run_source(source):
    """Run source text by run_file()."""
    read, write = os.pipe()
    os.write(write, source.encode())
    os.close(write)
    _memrt.run_file(read, "source", {})


@pytest.mark.parametrize(
    "run_program",
    [
        lambda: _memrt.run_code(compile("1", "code", "exec"), {}),
        lambda: _memrt.call_outermost(int),
        lambda: _memrt.call_at_exit(int, None),
        lambda: run_source("1"),
    ],
    ids=["run_code", "call_outermost", "call_at_exit", "run_file"],
)
def test_caller_frames_are_restored_after_a_program(run_program):
    def names():
        frame = sys._getframe(1)
        while frame is not None:
            yield frame.f_code.co_name
            frame = frame.f_back

    before = list(names())
    run_program()
    assert list(names()) == before


# --- Modules in the current folder. ---

SHADOWS = ("argparse", "json", "platform", "shtab", "jinja2", "matplotlib", "memrt")
OF_PACKAGES = SHADOWS[3:6]
SCRIPT = Path(sysconfig.get_path("scripts")) / "memrt"


def shadowed(folder, names, *command):
    """Run a command in a folder whose modules have the names of modules that memrt imports."""
    for name in names:
        (folder / f"{name}.py").write_text("raise SystemExit('a module of the current folder')\n")
    return outcome(folder, *command)


@pytest.mark.parametrize(
    "arguments",
    [
        ["info"],
        ["completion", "bash"],
        ["run", "--quiet", "--html", "a.html", "--plot", "a.png", "-c", "print(1)"],
        ["run", "-c", "print(1)"],
        ["leaks", "-c", "print(1)"],
    ],
)
@pytest.mark.parametrize("command", ["memrt", "python -m memrt"])
def test_commands_import_no_module_of_the_current_folder(tmp_path, command, arguments):
    prefix, names = ([SCRIPT], SHADOWS) if command == "memrt" else (["-m", "memrt"], OF_PACKAGES)
    status, said, errors = shadowed(tmp_path, names, *prefix, *arguments)
    assert "module of the current folder" not in said + errors
    assert status == 0, errors
    assert said


def test_report_imports_no_module_of_the_current_folder(tmp_path):
    command = ("run", "--quiet", "--record", "program.memrt", "-c", "print(1)")
    assert outcome(tmp_path, SCRIPT, *command)[0] == 0
    status, said, errors = shadowed(tmp_path, SHADOWS, SCRIPT, "report", "program.memrt")
    assert (status, errors) == (0, "")
    assert "program.html" in said


@pytest.mark.parametrize("flags", [[], ["-I"]])
@pytest.mark.parametrize("case", ["-m package a", "facts.py", "folder a -- b", "-c print(1) a"])
def test_console_script_runs_programs_as_python_does(folder, flags, case):
    plain = outcome(folder, *flags, *CASES[case])
    assert outcome(folder, *flags, SCRIPT, "run", "--quiet", *CASES[case]) == plain


def test_sys_path_entry_not_added_by_memrt_stays(tmp_path, monkeypatch):
    shown = "import sys; print(sys.path[:3])"
    embedded = "import sys; sys.path[0] = '/x'; from memrt.commands import script; script()"
    expected = (0, "['', '/x', '/first']\n", "")
    monkeypatch.setenv("PYTHONPATH", f"/first{os.pathsep}{tmp_path}")
    plain, ours = outcomes(tmp_path, ["-c", shown])
    assert ours == plain == (0, f"['', '/first', '{tmp_path}']\n", "")
    assert outcome(tmp_path, "-c", embedded, "run", "--quiet", "-c", shown) == expected
