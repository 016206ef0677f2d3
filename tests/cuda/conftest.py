"""Fixtures of all CUDA tests: a machine, and balanced accounts."""

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
    """Return the fake driver, or a GPU if TEST_ON_GPU is 1. memrt has loaded the driver."""
    real = os.environ.get(GPU) == "1"
    if not real:
        fake = Fake(compile_fake(tmp_path_factory.mktemp("driver")))
        memrt.set_option("cuda_driver", fake.path)
    assert memrt.cuda.why_not() is None
    for kind in ("device", "managed", "pinned"):  # creates policies, which persist
        memrt.from_cuda_array_interface(memrt.cuda.empty(1, kind=kind))
    return Gpu() if real else fake


@pytest.fixture
def fake(machine) -> Fake:
    """Return the fake driver, to inspect calls or make calls fail. Skip on a GPU."""
    if not isinstance(machine, Fake):
        pytest.skip("only the fake driver records calls")
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
        "options": memrt.debug.options(),
    }


@pytest.fixture(autouse=True)
def balanced_books(request, machine):
    """Verify the accounts after a test: no memory is left, and the fake driver saw no fault."""
    if isinstance(machine, Fake):
        memrt.release_unused()  # pinned memory that is kept for later requests
        machine.reset()
        live = machine.live()
    before = _books()
    yield
    request.node.funcargs.clear()
    assert _books() == before
    if isinstance(machine, Fake):
        memrt.release_unused()
        assert (machine.faults(), machine.live()) == (0, live)
