"""The command config."""

import os
import shlex
import subprocess
import sys

import memrt
import pytest
from memrt.commands import main


def config(*options):
    command = [sys.executable, "-m", "memrt", "config", *options]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


def test_config_prints_a_line_for_each_option():
    include, library = memrt.get_include(), memrt.get_library()
    folder = os.path.dirname(library)
    result = config(
        "--pkgconfigdir", "--cmakedir", "--includedir", "--libs", "--cflags", "--version"
    )
    assert result.stdout.splitlines() == [
        memrt.__version__,
        f"-I{include}",
        f"{library} -Wl,-rpath,{folder}",
        include,
        memrt.get_cmake_dir(),
        f"{folder}/pkgconfig",
    ]
    assert os.path.isfile(f"{folder}/pkgconfig/memrt.pc")


def test_config_without_options_names_the_options():
    result = config()
    assert (result.returncode, result.stdout) == (2, "")
    assert "give some of --version, --cflags, --libs, --includedir, --cmakedir" in result.stderr


def test_config_quotes_paths_with_spaces(monkeypatch, tmp_path, capsys):
    (tmp_path / "with space").mkdir()
    monkeypatch.setattr(memrt, "get_include", lambda: str(tmp_path / "with space"))
    main(["config", "--cflags"])
    assert shlex.split(capsys.readouterr().out) == [f"-I{tmp_path}/with space"]


def test_config_without_headers_names_the_missing_folder(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(memrt, "get_include", lambda: str(tmp_path / "absent"))
    with pytest.raises(SystemExit) as ended:
        main(["config", "--cflags", "--version"])
    assert ended.value.code == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith(f"memrt: {tmp_path}/absent does not exist: install memrt again")
