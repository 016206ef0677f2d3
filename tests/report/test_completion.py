"""The script by which shells complete commands."""

import subprocess
import sys

import pytest


def completion(shell):
    command = [sys.executable, "-m", "memrt", "completion", shell]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def completed(*words):
    """What bash completes the last word to."""
    listed = " ".join(f"'{word}'" for word in words)
    script = (
        f"{completion('bash')}\nCOMP_WORDS=({listed}); COMP_CWORD={len(words) - 1}\n"
        "_shtab_memrt\nprintf '%s\\n' \"${COMPREPLY[@]}\"\n"
    )
    result = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)
    return result.stdout.split()


def test_bash_completes_commands_and_options():
    assert completed("memrt", "ru") == ["run"]
    assert set(completed("memrt", "run", "--h")) == {"--help", "--html"}
    assert "zsh" in completed("memrt", "completion", "")


@pytest.mark.parametrize("shell", ["bash", "zsh", "tcsh"])
def test_every_shell_has_a_script_with_all_commands(shell):
    script = completion(shell)
    for command in ("run", "report", "leaks", "info", "stats"):
        assert command in script


def test_without_shtab_the_extra_is_named():
    code = "import sys; sys.modules['shtab'] = None; from memrt.commands import main; main()"
    result = subprocess.run(
        [sys.executable, "-c", code, "completion", "bash"], capture_output=True, text=True
    )
    assert result.returncode == 2
    assert "pip install 'memrt[report]'" in result.stderr


def test_the_command_finds_modules_in_the_current_folder_as_python_m_does(tmp_path):
    (tmp_path / "found.py").write_text("import sys; print(sys.argv[1:], sys.path[0])\n")
    program = [sys.executable, "-c", "import sys; sys.path[0] = '/bin'; "
               "from memrt.commands import script; script()"]  # fmt: skip
    arguments = ["run", "--quiet", "-m", "found", "x"]
    ours = subprocess.run([*program, *arguments], cwd=tmp_path, capture_output=True, text=True)
    plain = subprocess.run(
        [sys.executable, "-m", "found", "x"], cwd=tmp_path, capture_output=True, text=True
    )
    assert (ours.stdout, ours.stderr) == (plain.stdout, plain.stderr)
