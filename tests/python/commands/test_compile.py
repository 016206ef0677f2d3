"""The command compile, as far as it works without Numba. tests/numba has all other tests."""

import sys

import pytest
from memrt.commands import main


@pytest.fixture
def without_numba(monkeypatch):
    for name in [each for each in sys.modules if each.partition(".")[0] in ("numba", "llvmlite")]:
        monkeypatch.delitem(sys.modules, name)
    for name in ("numba", "llvmlite"):
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.delitem(sys.modules, "memrt.numba._objects.object_code", raising=False)


def test_missing_numba_is_named(without_numba, tmp_path, capsys):
    (tmp_path / "plain.py").write_text("def f(x): return x\n")
    with pytest.raises(SystemExit) as ended:
        main(["compile", f"{tmp_path}/plain.py:f", "-o", str(tmp_path / "f.o")])
    assert ended.value.code == 2
    assert capsys.readouterr().err.startswith("memrt: compile needs Numba, got ")
