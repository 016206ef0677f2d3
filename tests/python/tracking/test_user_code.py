"""The user's code in call stacks, and the texts of places."""

import copy
import os
import subprocess
import sys
import sysconfig
import threading
import types

import memrt
import numpy as np
import pytest
from gil import needs_gil
from memrt._profile.recording import dumps, loads
from memrt._tracking import user_code
from memrt._tracking.sites import site_text

HERE = os.getcwd()
PACKAGES = sysconfig.get_path("purelib")
STANDARD = os.path.dirname(os.__file__)
MEMRT = os.path.dirname(memrt.__file__)


def call(file, line=3, function="f", is_native=False):
    return memrt.types.Frame(function, file, line, 0, is_native)


def site(*files):
    """Return a site with one call for each file, the innermost first."""
    return memrt.types.Site(1, tuple(call(file) for file in files))


@pytest.fixture
def started_in(monkeypatch):
    """Return a function that sets the current folder at the start, and the script."""

    def start(folder, script=None):
        monkeypatch.setattr(user_code, "_started_in", str(folder))
        main = types.ModuleType("__main__")
        main.__file__ = None if script is None else str(script)
        monkeypatch.setitem(sys.modules, "__main__", main)
        monkeypatch.setattr(sys, "argv", ["-c"])

    return start


@pytest.mark.parametrize(
    ("files", "chosen", "through"),
    [
        (["/p/a.py"], "/p/a.py", None),
        ([f"{np.__path__[0]}/x.py", "/p/a.py", "/p/b.py"], "/p/a.py", f"{np.__path__[0]}/x.py"),
        ([f"{PACKAGES}/pandas/a.py", "/p/a.py"], "/p/a.py", f"{PACKAGES}/pandas/a.py"),
        (["/usr/lib/python3/dist-packages/a.py", "/p/a.py"], "/p/a.py",
         "/usr/lib/python3/dist-packages/a.py"),
        ([f"{STANDARD}/functools.py", "/p/a.py"], "/p/a.py", f"{STANDARD}/functools.py"),
        ([f"{MEMRT}/_arrays/a.py", "/p/a.py"], "/p/a.py", None),
        (["<frozen runpy>", "/p/a.py"], "/p/a.py", None),
        ([f"{MEMRT}/a.py", f"{np.__path__[0]}/x.py", "<string>"], "<string>",
         f"{np.__path__[0]}/x.py"),
        # No user's code: the innermost package other than NumPy, then the innermost call.
        ([f"{np.__path__[0]}/x.py", f"{PACKAGES}/celery/a.py", f"{PACKAGES}/b.py"],
         f"{PACKAGES}/celery/a.py", f"{np.__path__[0]}/x.py"),
        (["<frozen importlib>", f"{STANDARD}/json/a.py", f"{sysconfig.get_path('scripts')}/tool"],
         f"{STANDARD}/json/a.py", None),
        (["<frozen importlib>", f"{MEMRT}/a.py"], "<frozen importlib>", None),
    ],
)  # fmt: skip
def test_place_is_the_innermost_call_of_the_users_code(files, chosen, through):
    found = site(*files)
    assert found.place.file == chosen
    assert (found.through and found.through.file) == through


def test_native_call_is_neither_the_place_nor_a_library():
    native = call("/usr/lib/libm.so", line=0, is_native=True)
    found = memrt.types.Site(1, (native, call("/p/a.py")))
    assert (found.place.file, found.through) == ("/p/a.py", None)


class Copied:
    """Object whose copy is the list of library calls that run during copy.deepcopy()."""

    def __deepcopy__(self, memo):
        return user_code.running_library_calls()


@needs_gil
def test_running_library_calls_have_line_and_library():
    copied = Copied()
    line = sys._getframe().f_lineno + 1
    found = copy.deepcopy(copied)
    assert user_code.LibraryCall(__file__, line, copy.__file__) in found
    assert {each.file for each in found if each.line == line} == {__file__}
    after = user_code.running_library_calls()
    assert [each for each in after if each.file == __file__] == []


@needs_gil
def test_running_library_calls_of_another_thread():
    started, ended = threading.Event(), threading.Event()

    class Waiting:
        def __deepcopy__(self, memo):
            started.set()
            ended.wait(60)

    thread = threading.Thread(target=lambda: copy.deepcopy(Waiting()))
    thread.start()
    started.wait(60)
    found = user_code.running_library_calls()
    ended.set()
    thread.join()
    assert (__file__, copy.__file__) in {(each.file, each.library) for each in found}


def test_running_library_calls_without_gil_are_unknown(monkeypatch):
    def refuse():
        raise RuntimeError

    monkeypatch.setattr("memrt._memrt.running_calls", refuse)
    assert user_code.running_library_calls() == set()


def test_outermost_library_call_matches_the_running_call():
    frames = site(f"{PACKAGES}/a.py", f"{STANDARD}/copy.py", "/p/a.py", "/p/b.py").frames
    found = user_code.outermost_library_call(frames)
    assert found == user_code.LibraryCall("/p/a.py", 3, f"{STANDARD}/copy.py")
    assert user_code.outermost_library_call(frames[2:]) is None


def test_paths_are_relative_to_the_folder_at_the_start(started_in):
    started_in("/work/app")
    assert str(site("/work/app/lib/a.py")) == "f at lib/a.py:3"
    assert str(site("/work/apples/a.py")) == "f at /work/apples/a.py:3"


@pytest.mark.parametrize("marker", ["pyproject.toml", ".git", "setup.py"])
def test_paths_are_relative_to_the_project_of_the_script(started_in, tmp_path, marker):
    inner = tmp_path / f"with{marker}" / "bin"
    inner.mkdir(parents=True)
    (inner.parent / marker).touch()
    started_in("/elsewhere", inner / "script.py")
    assert str(site(str(inner / "a.py"))) == "f at bin/a.py:3"
    assert str(site(str(tmp_path / "a.py"))) == f"f at {tmp_path}/a.py:3"


def test_root_folder_is_not_a_project(started_in):
    started_in("/")
    assert str(site("/srv/a.py")) == "f at /srv/a.py:3"


def test_library_paths_start_at_the_package(started_in):
    through = site(f"{PACKAGES}/pandas/core/frame.py", "/p/a.py").through
    assert str(through) == "f at pandas/core/frame.py:3"
    assert str(site(f"{STANDARD}/json/decoder.py")) == "f at json/decoder.py:3"
    text = site_text(site(f"{PACKAGES}/pandas/core/frame.py", "/p/a.py"))
    assert text == "f at /p/a.py:3, through pandas/core/frame.py:3"
    assert site_text(None) == "unknown source line"
    started_in(os.path.dirname(STANDARD))  # an environment in the project
    assert str(site(f"{STANDARD}/json/decoder.py")) == "f at json/decoder.py:3"


def test_cell_of_a_notebook_has_its_number(monkeypatch):
    assert str(site("<ipython-input-2-0a1b2c>")) == "f at In[2], line 3"

    def name_of(file):
        return ("Cell", "In[7]") if file == "/tmp/ipykernel_1/123.py" else None

    shell = types.SimpleNamespace(compile=types.SimpleNamespace(format_code_name=name_of))
    module = types.SimpleNamespace(get_ipython=lambda: shell)
    monkeypatch.setitem(sys.modules, "IPython", module)
    assert str(site("/tmp/ipykernel_1/123.py")) == "f at In[7], line 3"
    assert str(site("/p/a.py")) == "f at /p/a.py:3"


def test_all_frames_show_innermost_calls_and_whole_paths():
    user_code.show_all_frames(True)
    try:
        found = site(f"{PACKAGES}/pandas/a.py", f"{HERE}/a.py")
        assert str(found) == f"f at {PACKAGES}/pandas/a.py:3"
        assert found.through is None
        assert not user_code.is_a_runners(found.frames[0])
    finally:
        user_code.show_all_frames(False)
    assert str(found) == "f at a.py:3"


def test_removed_folder_at_the_start_leaves_whole_paths(tmp_path):
    code = (
        "import numpy, os\n"  # first: Python 3.13.0 fails in code of NumPy in a removed folder
        "os.rmdir(os.getcwd())\n"
        "from memrt._tracking import user_code\n"
        "print(user_code.where('/p/a.py', 3), user_code._started_in == '')"
    )
    (tmp_path / "gone").mkdir()
    result = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path / "gone", capture_output=True, text=True
    )
    assert result.stdout == "/p/a.py:3 True\n", result.stderr


def test_roots_name_the_project_and_the_libraries():
    found = user_code.roots()
    assert f"{HERE}/" in found["project"]
    assert f"{STANDARD}/" in found["library"]
    assert f"{MEMRT}/" in found["library"]


def test_recording_has_user_calls_and_the_roots_of_the_machine(tmp_path):
    (tmp_path / "pyproject.toml").touch()
    script = tmp_path / "app.py"
    script.write_text("import numpy as np\nkept = np.tile(np.arange(10_000.0), 10)\n")
    command = [sys.executable, "-m", "memrt", "run", "--quiet", "--record", tmp_path / "file"]
    subprocess.run([*command, script], check=True, timeout=60)
    (document,) = loads((tmp_path / "file").read_bytes())
    site = next(row[11] for row in document["live"]["rows"] if row[1] == 800_000)
    assert next(row[1] for row in document["sites"] if row[0] == site) == "<module> at app.py:2"
    user, library = next(row[1:] for row in document["user_calls"] if row[0] == site)
    assert document["frames"][user] == f"<module> at {script}:2"
    assert "/numpy/lib/" in document["frames"][library]
    assert f"{tmp_path}/" in document["roots"]["project"]
    del document["user_calls"], document["roots"]  # as in recordings of earlier releases
    assert loads(dumps([document]).encode()) == [document]


@needs_gil  # without holders, the report has no calls
def test_all_frames_option_names_the_innermost_call(tmp_path):
    script = tmp_path / "app.py"
    script.write_text("import numpy as np\nkept = np.tile(np.arange(10_000.0), 10)\n")
    command = [sys.executable, "-m", "memrt", "leaks", "--all-frames", script]
    result = subprocess.run(command, capture_output=True, text=True, timeout=60)
    first, after = result.stderr.splitlines()[1:3]
    assert f"{np.__path__[0]}/lib/" in first
    assert after == f"      called from <module> at {script}:2"
