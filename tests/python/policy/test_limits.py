"""Limits of live bytes, of the process, policies and scopes."""

import sys
import threading

import memrt
import numpy as np
import pytest
from atonce import on_threads

MIB = 1 << 20


def live_bytes():
    return memrt.stats().live


def test_policy_refuses_array_above_its_limit():
    policy = memrt.Policy(name="images", limit="1 MiB")
    with policy:
        image = np.empty(MIB, "u1")
        with pytest.raises(MemoryError):
            np.empty(1, "u1")
        del image
        np.empty(MIB, "u1")
    assert policy.limit == MIB
    assert policy.stats().peak == MIB
    assert "limit 1.0 MiB" in repr(policy)


def test_scope_refuses_buffer_above_its_limit_with_its_path():
    with memrt.scope("outer", limit=2 * MIB), memrt.scope("inner") as inner:
        buffer = memrt.alloc(MIB)
        with pytest.raises(memrt.OutOfMemoryError) as caught:
            memrt.alloc(MIB + 1)
        assert "limit of scope 'outer': 2.0 MiB, 1.0 MiB live" in str(caught.value)
        inner.limit = "1 MiB"
        with pytest.raises(MemoryError):
            memrt.alloc(1)
        inner.limit = None
        assert inner.limit is None
        memrt.alloc(MIB)
        del buffer


def test_limit_of_scope_ends_with_last_scope_object():
    with memrt.scope("short", limit=100) as scope:
        assert scope.limit == 100
        assert "limit 100 B" in repr(scope)
    with memrt.scope("short") as again:
        assert again.limit == 100
    del scope, again
    with memrt.scope("short") as later:
        assert later.limit is None


def test_decorated_functions_run_within_limit():
    @memrt.scope("step", limit=1000)
    def step(size):
        return memrt.alloc(size)

    step(1000)
    with pytest.raises(MemoryError):
        step(1001)


def test_process_limit_refuses_and_is_listed(limited_process):
    bound = live_bytes() + 4 * MIB
    assert memrt.limit(bound) == bound
    buffer = memrt.alloc(4 * MIB)
    with pytest.raises(memrt.OutOfMemoryError, match="limit of the process: "):
        memrt.alloc(1)
    rows = {row.of: row for row in memrt.debug.limits()}
    assert rows["process"].limit == bound
    assert rows["process"].live == bound
    del buffer
    assert memrt.limit(None) is None
    assert "process" not in [row.of for row in memrt.debug.limits()]


@pytest.mark.parametrize("amount", ["80%", "auto", "AUTO"])
def test_part_of_system_memory_is_a_limit(limited_process, amount):
    bound = memrt.limit(amount)
    assert MIB < bound < 2**60
    options = {option.name: option.value for option in memrt.debug.options()}
    assert options["MEMRT_LIMIT"] == amount.lower()


def test_percentages_refer_to_one_amount(limited_process):
    tenth, half = memrt.limit("10%"), memrt.limit("50%")
    assert half == pytest.approx(5 * tenth, rel=1e-6)


@pytest.mark.parametrize(
    ("amount", "error", "text"),
    [
        (-1, ValueError, "at least 0, got -1"),
        ("much", ValueError, "got 'much'"),
        ("0%", ValueError, "must be a number of bytes"),
        ("101%", ValueError, "must be a number of bytes"),
        ("1.5%", ValueError, "must be a number of bytes"),
        (1.5, TypeError, "got float 1.5"),
        (True, TypeError, "got bool True"),
        ([], TypeError, "got list"),
        (10**30, ValueError, "must be a number of bytes"),
    ],
)
def test_invalid_amount_is_refused(limited_process, amount, error, text):
    with pytest.raises(error, match=text):
        memrt.limit(amount)
    assert "process" not in [row.of for row in memrt.debug.limits()]


@pytest.mark.parametrize("amount", [-1, "much", "80%", "auto"])
def test_invalid_amount_for_policy_and_scope_is_refused(amount):
    with pytest.raises(ValueError, match=r"limit|size"):
        memrt.Policy(limit=amount)
    with pytest.raises(ValueError, match=r"limit|size"):
        memrt.scope("x", limit=amount)


def test_amounts_have_units():
    policy = memrt.Policy()
    for amount, bound in (("1.5 GiB", 3 << 29), ("2MB", 2_000_000), ("3k", 3072), (7, 7)):
        policy.limit = amount
        assert policy.limit == bound


def test_threads_stay_within_limit_together():
    policy = memrt.Policy(name="crowd", limit=8 * MIB)
    held, lock, over = [0], threading.Lock(), []

    def work(seed):
        random = np.random.default_rng(seed)
        kept = []
        with policy:
            for size in random.integers(1, MIB, 300):
                try:
                    kept.append(np.empty(size, "u1"))
                except MemoryError:
                    with lock:
                        held[0] -= sum(array.nbytes for array in kept)
                    kept.clear()
                    continue
                with lock:
                    held[0] += int(size)
                    over.append(held[0] > 8 * MIB)
            with lock:
                held[0] -= sum(array.nbytes for array in kept)

    on_threads(work, 4)
    assert not any(over)
    assert policy.stats().failed > 0
    with policy:
        np.empty(8 * MIB, "u1")


def test_environment_limits_the_process(run_python):
    result = run_python(
        "import memrt\n"
        "try:\n"
        "    memrt.alloc(20 << 20)\n"
        "except MemoryError as error:\n"
        "    print(str(error).splitlines()[0])\n"
        "    print('limit of the process: 16.0 MiB' in str(error))\n",
        env={"MEMRT_LIMIT": "16M"},
    )
    assert result.stdout == "no memory for 20.0 MiB (20971520 bytes) of policy 'default'\nTrue\n"


def test_run_command_limits_program(run_program, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        "import numpy as np\n"
        "try:\n"
        "    np.ones(64 << 20, 'u1')\n"
        "except MemoryError:\n"
        "    print('refused')\n"
    )
    command = (sys.executable, "-m", "memrt", "run", "--quiet", "--limit", "32M")
    assert run_program(*command, str(program)).stdout == "refused\n"
