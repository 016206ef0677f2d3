"""The script for completion of commands in shells."""

import subprocess
import sys

import pytest


def completion(shell):
    command = [sys.executable, "-m", "memrt", "completion", shell]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def completed(*words):
    """Return bash's completions of the last word."""
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
def test_completion_script_of_each_shell_has_the_commands(shell):
    script = completion(shell)
    for command in ("run", "report", "leaks", "info", "stats"):
        assert command in script


def test_completion_without_shtab_gives_install_hint():
    code = "import sys; sys.modules['shtab'] = None; from memrt.commands import main; main()"
    result = subprocess.run(
        [sys.executable, "-c", code, "completion", "bash"], capture_output=True, text=True
    )
    assert result.returncode == 2
    assert "pip install 'memrt[report]'" in result.stderr


def test_run_m_finds_modules_in_the_current_folder(tmp_path):
    (tmp_path / "found.py").write_text("import sys; print(sys.argv[1:], sys.path[0])\n")
    program = [sys.executable, "-c", "import sys; sys.path[0] = '/bin'; "
               "from memrt.commands import script; script()"]  # fmt: skip
    arguments = ["run", "--quiet", "-m", "found", "x"]
    ours = subprocess.run([*program, *arguments], cwd=tmp_path, capture_output=True, text=True)
    plain = subprocess.run(
        [sys.executable, "-m", "found", "x"], cwd=tmp_path, capture_output=True, text=True
    )
    assert (ours.stdout, ours.stderr) == (plain.stdout, plain.stderr)
