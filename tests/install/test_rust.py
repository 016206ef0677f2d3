"""The crate of examples/extensions/rust passes its own tests on the installed wheel."""

from __future__ import annotations

import os
import re
import shutil
import subprocess

import pytest
from consumers import ROOT, run
from memrt._support.installation import get_pkgconfig_dir

pytestmark = pytest.mark.timeout(900)  # cargo compiles the crate first

CRATE = ROOT / "examples" / "extensions" / "rust"
LOST = """
#[test]
fn reference_is_lost() {
    std::mem::forget(memrt::Array::<u8>::zeros(1000).unwrap());
}
"""


@pytest.fixture(scope="module")
def crate(tmp_path_factory):
    """Return a copy of the crate, where cargo is new enough."""
    said = run("cargo", "--version") if shutil.which("cargo") else "cargo 0.0"
    if tuple(map(int, re.findall(r"\d+", said)[:2])) < (1, 77):
        pytest.skip("needs cargo 1.77 or newer")
    return shutil.copytree(CRATE, tmp_path_factory.mktemp("rust") / "crate")


def cargo_test(crate, *options, **environment):
    environment |= {"PKG_CONFIG_PATH": get_pkgconfig_dir(), "MEMRT_LEAKS": "fail"}
    return run("cargo", "test", "--offline", "--manifest-path", crate / "Cargo.toml", *options,
               **environment)  # fmt: skip


@pytest.mark.parametrize("checking", ["0", "1"])
def test_crate_passes_its_tests_without_leaks(crate, checking):
    said = cargo_test(crate, MEMRT_CHECK=checking)
    assert re.findall(r"test result: ok. (\d+) passed", said) == ["0", "6", "1"]


def test_lost_reference_fails_the_tests_of_the_crate(crate):
    (crate / "tests" / "lost.rs").write_text(LOST)
    with pytest.raises(AssertionError, match="1000 bytes"):
        cargo_test(crate, "--test", "lost")
    (crate / "tests" / "lost.rs").unlink()


def test_build_without_the_library_names_the_remedy(crate, tmp_path):
    command = ["cargo", "build", "--offline", "--target-dir", str(tmp_path)]
    environment = {**os.environ, "PKG_CONFIG_PATH": ""}
    result = subprocess.run(command, cwd=crate, env=environment, capture_output=True, text=True)
    assert result.returncode != 0
    assert "set PKG_CONFIG_PATH to the output of `python -m memrt config" in result.stderr
