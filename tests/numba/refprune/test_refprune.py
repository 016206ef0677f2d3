"""memrt.numba.refprune.prune, and the command `python -m memrt refprune`."""

import subprocess
import sys

import pytest
from memrt.numba.refprune import PASSES, prune

# LLVM 14 of the oldest row reads typed pointers only. Newer LLVM prints `ptr`.
TEXT = """
declare void @NRT_incref(i8*)
declare void @NRT_decref(i8*)
declare void @use(i8*)
define i32 @f(i8* %p, i8* %q, i1 %c, i8** %excinfo) {
a:
  call void @NRT_incref(i8* null)
  call void @NRT_incref(i8* %p)
  br i1 %c, label %b, label %r
b:
  call void @NRT_decref(i8* %q)
  call void @use(i8* %p)
  call void @NRT_decref(i8* %p)
  ret i32 0
r:
  store i8* null, i8** %excinfo, !numba_exception_output !0
  ret i32 1
}
!0 = !{i1 true}
"""


def command(*arguments, text=TEXT):
    return subprocess.run([sys.executable, "-m", "memrt", "refprune", *map(str, arguments)],
                          input=text, capture_output=True, text=True, check=False)  # fmt: skip


class OldBinding:
    """llvmlite.binding with an LLVM whose pointers have types."""

    llvm_version_info = (15, 0, 7)

    @staticmethod
    def parse_assembly(text):
        raise RuntimeError("expected type")


def test_untyped_pointers_on_an_old_llvm_name_the_needed_version(monkeypatch):
    monkeypatch.setattr("memrt.numba.refprune._binding", OldBinding)
    message = "text must have typed pointers for LLVM 15, got 'ptr': install llvmlite 0.45"
    with pytest.raises(ValueError, match=message):
        prune("declare void @use(ptr)")
    with pytest.raises(ValueError, match="text must be LLVM IR, got expected type"):
        prune("declare void @use(pointer)")


def test_statistics_count_each_kind_of_call():
    stats = prune(TEXT)[1]
    assert (stats.functions, stats.increfs, stats.decrefs) == (1, 1, 1)
    assert (stats.nulls, stats.moved, stats.removed) == (1, 1, 3)
    assert stats.kept == []


@pytest.mark.parametrize(("missing", "removed"), [("null", 2), ("pairs", 1), ("sink", 1),
                                                  ("raise", 1)])  # fmt: skip
def test_passes_can_be_left_out(missing, removed):
    passes = [name for name in PASSES if name != missing]
    assert prune(TEXT, passes=passes)[1].removed == removed


def test_strict_mode_keeps_a_pair_around_a_call():
    assert prune(TEXT, mode="strict")[1].removed == 1


def test_explanation_names_function_block_and_reason():
    (kept,) = prune(TEXT, mode="strict", explain=True)[1].kept
    assert (kept.function, kept.block) == ("f", "a")
    assert kept.call in ("call void @NRT_incref(ptr %p)", "call void @NRT_incref(i8* %p)")
    assert kept.reason.replace("i8*", "ptr") == (
        "'call void @use(ptr %p)' in block 'b' may release the object"
    )


def test_second_run_finds_nothing():
    pruned = prune(TEXT)[0]
    assert prune(pruned) == (pruned, prune(pruned)[1])
    assert prune(pruned)[1].removed == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mode": "lax"}, "mode must be from premise, strict, got 'lax'"),
        ({"passes": ["all"]}, "passes must be from null, pairs, sink, raise, got 'all'"),
    ],
)
def test_unknown_option_is_an_error(options, message):
    with pytest.raises(ValueError, match=message):
        prune(TEXT, **options)


def test_invalid_ir_is_an_error():
    with pytest.raises(ValueError, match="text must be LLVM IR, got"):
        prune("int main;")


def test_command_prints_the_pruned_module():
    result = command("-")
    assert (result.returncode, result.stdout, result.stderr) == (0, prune(TEXT)[0], "")


def test_command_writes_a_file_and_prints_statistics(tmp_path):
    source, target = tmp_path / "in.ll", tmp_path / "out.ll"
    source.write_text(TEXT)
    result = command(source, "-o", target, "--stats", "--explain", "--mode", "strict")
    assert (result.returncode, result.stdout) == (0, "")
    assert target.read_text() == prune(TEXT, mode="strict")[0]
    assert "in block 'b' may release the object" in result.stderr
    assert "calls on null removed" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "text", "message"),
    [
        (["-"], "no IR", "memrt: text must be LLVM IR"),
        (["-", "--passes", "all"], TEXT, "memrt: passes must be from"),
        (["missing.ll"], TEXT, "memrt: cannot read 'missing.ll'"),
    ],
)
def test_command_reports_errors(arguments, text, message):
    result = command(*arguments, text=text)
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.startswith(message)
