"""What all tests of CUDA share: a machine, and balanced books."""

from __future__ import annotations

import gc
import os
from pathlib import Path

import memrt
import pytest
from hypothesis import HealthCheck, settings
from machines import GPU, Fake, Gpu, Machine, compile_fake
from recording import Recorder

settings.register_profile(
    "quick",
    max_examples=50,
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
settings.load_profile("quick")


def pytest_configure(config):
    record = os.environ.get("GPU_RECORD")
    if record:
        config.pluginmanager.register(Recorder(Path(record)))


@pytest.fixture(scope="session")
def machine(tmp_path_factory) -> Machine:
    """The fake driver, or a GPU where TEST_ON_GPU says so; memrt has loaded it."""
    real = os.environ.get(GPU) == "1"
    if not real:
        fake = Fake(compile_fake(tmp_path_factory.mktemp("driver")))
        memrt.set_option("cuda_driver", fake.path)
    assert memrt.cuda.why_not() is None
    for kind in ("device", "managed", "pinned"):  # their policies are made, which stay
        memrt.from_cuda_array_interface(memrt.cuda.empty(1, kind=kind))
    return Gpu() if real else fake


@pytest.fixture
def fake(machine) -> Fake:
    """The fake driver, for tests that ask what was called or have something fail."""
    if not isinstance(machine, Fake):
        pytest.skip("only the fake driver tells what it was asked")
    return machine


def _books() -> dict[str, object]:
    gc.collect()
    stats = memrt.stats()
    kinds = ("device", "managed", "pinned")
    return {
        "adopted bytes": stats.adopted,
        "meminfos": stats.mi_alloc - stats.mi_free,
        "live": {kind: memrt.cuda.stats(kind).live for kind in kinds},
        "limits": {kind: memrt.cuda.stats(kind).limit for kind in kinds},
        "options": memrt.options(),
    }


@pytest.fixture(autouse=True)
def balanced_books(request, machine):
    """Nothing is left behind, and nothing was used that was gone."""
    if isinstance(machine, Fake):
        machine.reset()
        live = machine.live()
    before = _books()
    yield
    request.node.funcargs.clear()
    assert _books() == before
    if isinstance(machine, Fake):
        assert (machine.faults(), machine.live()) == (0, live)
