"""`run --children` records the processes a program forks or starts, without side effects."""

import os
import subprocess
import sys
from pathlib import Path

import memrt
import pytest
from memrt._profile.recording import loads
from memrt.commands.programs.supervisor import write_outputs

pytestmark = pytest.mark.slow


@pytest.fixture
def family(tmp_path):
    """Return a function that records a program and its children. The result is the finished process
    and all documents, parents first.
    """

    def record(code, *options, **others):
        script = tmp_path / "program.py"
        script.write_text(code)
        command = [sys.executable, "-m", "memrt", "run", "--quiet", "--children"]
        environment = {**os.environ, "PYTHONWARNINGS": "ignore", "TMPDIR": str(tmp_path)}
        result = subprocess.run(
            [*command, "--record", "out", "--force", *options, str(script)],
            cwd=tmp_path, capture_output=True, text=True, timeout=120,
            env={**environment, **others}, check=False,
        )  # fmt: skip
        assert list(tmp_path.glob("memrt-*")) == []  # temporary files are removed
        return result, loads((tmp_path / "out").read_bytes())

    return record


def has_live(document, size):
    return size in [row[1] for row in document["live"]["rows"]]


def peak(document):
    return max(document["timeline"]["live"])


PROCESS = """\
import multiprocessing, numpy as np
def work():
    global kept
    kept = np.ones(200_000)
    print(kept.sum())
if __name__ == "__main__":
    before = np.ones(1000)
    child = multiprocessing.get_context({method!r}).Process(target=work)
    child.start()
    child.join()
    print(child.exitcode)
"""


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_multiprocessing_children_are_recorded(family, method):
    result, documents = family(PROCESS.format(method=method))
    assert (result.stdout, result.stderr) == ("200000.0\n0\n", "")
    parent, *children = documents
    assert has_live(parent, 8000)
    (child,) = [each for each in children if has_live(each, 1_600_000)]
    assert child["ended"] == "ended"
    assert child["pid"] != parent["pid"]
    if method != "forkserver":
        assert child["parent"] == parent["pid"]
        assert has_live(child, 8000) == (method == "fork")


SUBPROCESS = """\
import subprocess, sys, numpy as np
child = "import numpy as np, sys; kept = np.ones(300_000); print(kept.sum()); sys.exit(7)"
print(subprocess.run([sys.executable, {flag}"-c", child]).returncode)
"""


def test_python_subprocess_is_recorded_and_keeps_exit_status(family):
    result, (parent, child) = family(SUBPROCESS.format(flag=""))
    assert (result.stdout, result.stderr) == ("300000.0\n7\n", "")
    assert has_live(child, 2_400_000)
    assert child["parent"] == parent["pid"]
    assert child["settings"] == parent["settings"]


CHILD = """\
import numpy as np
def f(n): return np.empty(300_000) if n == 0 else f(n - 1)
kept = f(9)
"""
NESTED = {
    "started": f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {CHILD!r}])\n",
    "forked": f"import os, sys\nif os.fork() == 0:\n    exec({CHILD!r})\nelse:\n    os.wait()\n",
}


def calls_of(document, size):
    """Return the calls of the only live buffer of a size: native calls, then Python calls."""
    columns = document["live"]["columns"]
    rows = [dict(zip(columns, row, strict=True)) for row in document["live"]["rows"]]
    (site,) = [row["site"] for row in rows if row["nbytes"] == size]
    (numbers,) = [calls for number, _, calls in document["sites"] if number == site]
    calls = [document["frames"][number] for number in numbers]
    return [c for c in calls if "+0x" in c], [c for c in calls if "+0x" not in c]


@pytest.mark.parametrize("kind", NESTED)
@pytest.mark.parametrize(("frames", "native"), [(2, 0), (0, 3), (4, 3)])
def test_children_record_calls_up_to_frames_and_native_limits(family, kind, frames, native):
    result, documents = family(NESTED[kind], "--frames", str(frames), "--native", str(native))
    assert (result.returncode, result.stderr) == (0, "")
    natives, calls = calls_of(documents[1], 2_400_000)
    assert [call.split()[0] for call in calls] == ["f"] * frames
    assert bool(natives) == bool(native)
    assert len(natives) <= native


@pytest.mark.parametrize("option", [(), ("--sample", "64K")])
def test_children_sample_only_with_the_sample_option(family, option):
    child = "import numpy as np; kept = [np.ones(125) for _ in range(5_000)]"
    code = f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {child!r}])\n"
    _, (_, document) = family(code, *option)
    assert (document["live"]["more"] + len(document["live"]["rows"]) < 500) == bool(option)


def test_python_subprocess_ignoring_environment_is_not_recorded(family):
    result, documents = family(SUBPROCESS.format(flag="'-E', "))
    assert (result.stdout, result.stderr) == ("300000.0\n7\n", "")
    assert len(documents) == 1


def test_grandchildren_are_recorded(family):
    code = """\
import os, subprocess, sys, numpy as np
if len(sys.argv) == 1:
    kept = np.ones(1000)
    sys.exit(subprocess.run([sys.executable, __file__, "child"]).returncode)
kept = np.ones(2000)
if os.fork() == 0:
    mine = np.ones(3000)
    sys.exit(5)
sys.exit(os.waitstatus_to_exitcode(os.wait()[1]))
"""
    result, documents = family(code)
    assert result.returncode == 5
    sizes = [
        [size for size in (8000, 16_000, 24_000) if has_live(each, size)] for each in documents
    ]
    assert sizes == [[8000], [16_000], [16_000, 24_000]]
    assert [each["ended"] for each in documents[:1]] == ["ended with status 5"]


def test_children_recording_starts_no_extra_process(family):
    code = """\
import os, sys, time
def hook(event, arguments):
    if event.startswith(("subprocess.", "os.fork", "os.posix_spawn", "os.system", "os.exec")):
        os.write(1, event.encode() + b"\\n")
sys.addaudithook(hook)
if os.fork() == 0:
    time.sleep(0.3)
    sys.exit()
os.wait()
"""
    result, _ = family(code)
    assert (result.stdout, result.stderr) == ("os.fork\n", "")


def test_killed_workers_keep_their_partial_recording(family):
    code = """\
import multiprocessing, time, numpy as np
def work(size):
    array = np.ones(size)
    time.sleep(0.6)
    return array.sum()
if __name__ == "__main__":
    with multiprocessing.get_context("fork").Pool(2) as pool:  # which kills them
        print(sum(pool.map(work, [400_000] * 2, chunksize=1)))
"""
    result, (_, *workers) = family(code)
    assert (result.stdout, result.stderr) == ("800000.0\n", "")
    assert [peak(worker) >= 3_200_000 for worker in workers] == [True, True]
    assert {worker["ended"] for worker in workers} == {
        "killed, ended by os._exit, or outlived its parent"
    }


@pytest.mark.parametrize("folder", ["kept", "removed"])
def test_child_ending_after_its_parent_leaves_no_file(tmp_path, folder):
    code = """
import os, sys
from memrt._profile.family import Family
family = Family({"settings": {}, "tracked": False})
family.follow()
if sys.argv[1] == "removed":
    os.rmdir(family._folder)
remove = os.rmdir
def write_and_remove(path, **options):
    try:
        open(os.path.join(family._folder, "1-late"), "xb").close()
    except FileNotFoundError:
        pass
    remove(path, **options)
os.rmdir = write_and_remove
family.collect()
print(os.listdir(os.environ["TMPDIR"]))
"""
    result = subprocess.run(
        [sys.executable, "-c", code, folder], text=True, stdout=subprocess.PIPE, check=True,
        env={**os.environ, "TMPDIR": str(tmp_path)}, timeout=120,
    )  # fmt: skip
    assert result.stdout == "[]\n"


EXEC = """\
import os, sys, numpy as np
if len(sys.argv) == 1:
    kept = np.ones(1000)
    {code}
kept = np.ones(2000)
"""
EXECS = {
    "child": "os.fork() and (os.wait(), sys.exit()) or os.execv({0})",
    "main": "os.execv({0})",
    "path": "os.execlp(sys.executable, *[{0}][1])",
    "environment": "os.execve({0}, os.environ)",
}


@pytest.mark.parametrize("kind", EXECS)
def test_recording_continues_after_exec(family, kind):
    again = "sys.executable, [sys.executable, __file__, 'again']"
    result, documents = family(EXEC.format(code=EXECS[kind].format(again)))
    assert (result.returncode, result.stderr) == (0, "")
    before, after = documents[-2:]
    assert (before["ended"], after["ended"]) == ("replaced by os.exec*", "ended")
    assert before["pid"] == after["pid"]
    assert peak(before) >= 8000
    assert has_live(after, 16_000)
    assert len(documents) == (3 if kind == "child" else 2)


def test_recording_is_complete_when_exec_fails(family):
    code = "try: os.execv('/no/program', ['x'])\n    except OSError: pass"
    result, (document,) = family(EXEC.format(code=code))
    assert (result.returncode, result.stderr) == (0, "")
    assert document["ended"] == "ended"
    assert has_live(document, 16_000)


def test_program_that_restarts_its_own_command_is_recorded_once(family):
    code = """\
import os, sys, numpy as np
kept = np.ones(1000)
if "AGAIN" not in os.environ:
    os.environ["AGAIN"] = "1"
    os.execv(sys.executable, sys.orig_argv)
"""
    result, documents = family(code)
    assert (result.returncode, result.stderr) == (0, "")
    assert [each["ended"] for each in documents] == ["ended", "replaced by os.exec*"]


def test_exec_of_another_program_keeps_the_recording(tmp_path):
    code = "import os, numpy as np; kept = np.ones(1000); os.execlp('true', 'true')"
    command = [sys.executable, "-m", "memrt", "run", "--quiet", "--children"]
    subprocess.run(
        [*command, "--record", "out", "-c", code], cwd=tmp_path, check=True,
        env={**os.environ, "TMPDIR": str(tmp_path)}, timeout=120, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert list(tmp_path.glob("memrt-*")) == []
    (document,) = loads((tmp_path / "out").read_bytes())
    assert document["ended"] == "replaced by os.exec*"
    assert peak(document) >= 8000


KILLED = """\
import multiprocessing, os, signal, sys, time, numpy as np
def work(end):
    kept = np.ones(200_000)
    ready.set()
    time.sleep(end)
kept = np.zeros(300_000)  # ones() would need 8 bytes more while it fills the array
ready = multiprocessing.Event()
workers = [multiprocessing.get_context("fork").Process(target=work, args=(end,)) for end in (0, 9)]
for worker in workers:
    ready.clear()
    worker.start()
    ready.wait()
workers[0].join()
time.sleep(0.5)
os.kill(workers[1].pid, signal.SIGKILL)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_killed_program_leaves_outputs_with_its_children(family, tmp_path):
    page = tmp_path / "out.html"
    result, documents = family(KILLED, "--html", page)
    assert (result.returncode, result.stderr) == (-9, "")
    assert [each["ended"] for each in documents] == [
        "killed, or ended by os._exit",
        "ended",
        "killed, ended by os._exit, or outlived its parent",
    ]
    assert (peak(documents[0]), peak(documents[2]) // 100) == (2_400_000, 40_000)
    assert b"killed, or ended by os._exit" in page.read_bytes()


def test_program_that_leaves_at_once_names_its_outputs(tmp_path):
    code = "import os; os._exit(3)"
    command = [sys.executable, "-m", "memrt", "run", "--children", "--record", "out", "-c", code]
    result = subprocess.run(
        command, cwd=tmp_path, env={**os.environ, "TMPDIR": str(tmp_path)}, timeout=120,
        check=False, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert (result.returncode, result.stderr.splitlines()) == (
        3,
        [
            "memrt: the program was killed, or ended by os._exit",
            f"memrt: recording in {tmp_path}/out",
        ],
    )


def test_supervisor_reports_missing_recordings(tmp_path, capsys):
    (tmp_path / "memrt-1").mkdir()
    options = {"folder": str(tmp_path / "memrt-1"), "main": 1, "outputs": {}}
    write_outputs(options, quiet=True)
    assert "no report was written: the program was killed" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_folder_of_a_killed_supervisor_is_removed_by_the_next(tmp_path, family):
    code = "import os; from memrt._support.process_folder import make_folder; make_folder()"
    subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, "TMPDIR": str(tmp_path)}, check=True
    )
    assert len(list(tmp_path.glob("memrt-*"))) == 1
    family("pass")  # verifies that no folder is left


def test_children_without_a_recording_are_counted_in_a_note(family):
    code = "import os\nif os.fork() == 0: os._exit(3)\nos.wait()\n"
    result, (parent,) = family(code)
    assert result.returncode == 0
    assert parent["notes"][-1].startswith("1 of the child processes wrote no recording")


def test_child_exception_is_recorded_as_the_end_of_the_child(family):
    code = "import os, numpy as np\nif os.fork() == 0:\n  x = np.ones(9); 1 / 0\nos.wait()\n"
    result, (_, child) = family(code)
    assert "ZeroDivisionError" in result.stderr
    assert child["ended"] == "ended by ZeroDivisionError"


def test_children_still_run_the_user_sitecustomize(family, tmp_path):
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text("import sys; sys.was_here = True\n")
    code = """\
import subprocess, sys
print(subprocess.run([sys.executable, "-c", "import sys; print(sys.was_here)"]).returncode)
"""
    result, _ = family(code, PYTHONPATH=str(tmp_path / "site"))
    assert (result.stdout, result.stderr) == ("True\n0\n", "")


@pytest.mark.parametrize("order", [1, -1])
def test_memrt_sitecustomizes_chain_in_either_order(tmp_path, order):
    package = Path(memrt.__file__).parent
    sites = [package / "_profile" / "_site", package / "numba" / "_site"][::order]
    (tmp_path / "sitecustomize.py").write_text("print('reached')\n")
    paths = os.pathsep.join(map(str, [*sites, tmp_path]))
    environment = {k: v for k, v in os.environ.items() if k != "_MEMRT_FAMILY"}
    result = subprocess.run(
        [sys.executable, "-c", "print('ran')"], env={**environment, "PYTHONPATH": paths},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (result.stdout, result.stderr) == ("reached\nran\n", "")


def test_children_option_without_a_report_is_refused(tmp_path):
    command = [sys.executable, "-m", "memrt", "run", "--children", "-m", "this"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (result.returncode, result.stdout) == (2, "")
    assert "--children needs a report" in result.stderr
