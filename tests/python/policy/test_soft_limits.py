"""Soft limits: memory is freed when live bytes rise above a bound, and nothing is refused."""

import sys

import memrt
import numpy as np
import pytest
from atonce import on_threads
from waiting import wait_for

MIB = 1 << 20


def row_of(name):
    return next(row for row in memrt.debug.limits() if row.of == name)


def test_callback_drops_cache_above_soft_limit_of_process(limited_process):
    memrt.limit(None, soft=memrt.stats().live + 64 * MIB)
    cache = [memrt.alloc(MIB) for _ in range(60)]
    with memrt.on_pressure(lambda level: cache.clear()):
        kept = memrt.alloc(10 * MIB)
        wait_for(lambda: not cache)
        wait_for(lambda: memrt.debug.pressure().above_soft == 0)
    row = row_of("process")
    assert (row.limit, row.rises) == (None, 1)
    assert row.live + row.held < row.soft
    del kept


def test_policy_and_scope_have_soft_limits():
    policy = memrt.Policy(name="images", limit="8 MiB", soft="2 MiB")
    levels = []
    with memrt.on_pressure(levels.append), memrt.scope("load", soft="1 MiB") as load:
        table = memrt.zeros(3 * MIB, "u1", policy=policy)
        wait_for(lambda: row_of("policy 'images'").rises == 1 and load.soft_limit == MIB)
        wait_for(lambda: row_of("scope 'load'").rises == 1)
        wait_for(lambda: levels)
        wait_for(lambda: memrt.debug.pressure().above_soft == 2)
        assert memrt.debug.pressure().level in ("medium", "critical")
    assert policy.soft_limit == 2 * MIB
    assert "limit 8.0 MiB, soft limit 2.0 MiB" in repr(policy)
    policy.soft_limit = "4 MiB"
    load.soft_limit = None
    assert (policy.soft_limit, load.soft_limit) == (4 * MIB, None)
    assert "soft limit" not in repr(load)
    wait_for(lambda: memrt.debug.pressure().above_soft == 0)
    del table


def test_rise_of_inner_scope_is_one_of_the_outer_scope_too():
    with memrt.scope("outer", soft="2 MiB"), memrt.scope("inner", soft="1 MiB"):
        table = memrt.alloc(3 * MIB)
        wait_for(lambda: row_of("scope 'outer'").rises == 1)
        wait_for(lambda: row_of("scope 'outer/inner'").rises == 1)
    del table


def test_decorator_and_repr_carry_soft_limit():
    @memrt.scope("softstep", soft=1000)
    def step():
        return memrt.current_scope().soft_limit

    assert step() == 1000
    assert repr(memrt.scope("x", limit=5, soft=3)) == "memrt.scope('x', limit=5, soft=3)"


@pytest.mark.parametrize("make", [memrt.Policy, lambda **limits: memrt.scope("x", **limits)])
def test_soft_limit_above_limit_is_refused(make):
    text = "soft limit must be at most the limit of 1,000 bytes, got 1,001"
    with pytest.raises(ValueError, match=text):
        make(limit=1000, soft=1001)
    with pytest.raises(ValueError, match="soft limit must be at least 0, got -1"):
        make(soft=-1)
    with pytest.raises(TypeError, match="soft limit must be a whole number"):
        make(soft=1.5)
    with pytest.raises(ValueError, match="auto"):
        make(soft="auto")


def test_soft_limit_set_above_limit_changes_nothing():
    policy = memrt.Policy(limit=1000, soft=500)
    with pytest.raises(ValueError, match="soft limit must be at most the limit, got 1001"):
        policy.soft_limit = 1001
    assert policy.soft_limit == 500


def test_failed_limits_of_process_leave_earlier_limits(limited_process):
    before = memrt.stats().live
    memrt.limit(before + 8 * MIB, soft=before + 4 * MIB)
    with pytest.raises(ValueError, match="soft limit must be at most the limit of"):
        memrt.limit(before + 16 * MIB, soft=before + 17 * MIB)
    with pytest.raises(ValueError, match="soft limit must be at most the limit of"):
        memrt.limit(before + 2 * MIB, soft=before + 4 * MIB)  # a soft limit that is in force
    row = row_of("process")
    assert (row.limit, row.soft) == (before + 8 * MIB, before + 4 * MIB)
    with pytest.raises(ValueError, match="got 'much'"):
        memrt.limit(None, soft="much")
    assert row_of("process") == row
    memrt.limit(before + 2 * MIB)  # ends the soft limit
    assert row_of("process").soft is None


def test_relative_soft_limits_stay_within_limit(limited_process):
    memrt.limit("1 GiB", soft="auto")
    assert row_of("process").soft == (1 << 30) // 10 * 9
    memrt.limit("1 MiB", soft="100%")
    assert row_of("process").soft == MIB
    memrt.limit("80%", soft="40%")
    row = row_of("process")
    assert row.limit == pytest.approx(2 * row.soft, rel=1e-6)
    memrt.limit(None, soft="auto")
    assert row_of("process").soft > MIB
    memrt.limit("1 GiB", soft="auto")
    memrt.set_option("limit", "512M")
    wait_for(lambda: row_of("process").soft == (512 << 20) // 10 * 9)


def test_threads_above_soft_limit_are_not_refused():
    policy = memrt.Policy(name="crowd", soft=8 * MIB)

    def work(seed):
        random = np.random.default_rng(seed)
        with policy:
            kept = [np.empty(size, "u1") for size in random.integers(1, MIB, 100)]
        del kept

    on_threads(work, 4)
    wait_for(lambda: row_of("policy 'crowd'").rises >= 1)
    assert policy.stats().failed == 0


FORK = """
import os, time
import memrt
seen = []
registration = memrt.on_pressure(seen.append)
memrt.limit(None, soft=memrt.stats().live + (8 << 20))
child = os.fork()
kept = memrt.alloc(9 << 20)
while not seen:
    time.sleep(0.01)
assert seen == ["medium"], seen
if child == 0:
    os._exit(7)
_, status = os.waitpid(child, 0)
assert os.waitstatus_to_exitcode(status) == 7
"""


def test_soft_limit_continues_after_fork(run_python):
    run_python(FORK)


def test_environment_sets_soft_limit(run_python):
    code = "import memrt\nprint(memrt.debug.limits()[0][4:])"
    assert run_python(code, env={"MEMRT_SOFT_LIMIT": "16M"}).stdout == "(16777216, 0)\n"
    result = run_python(
        "import warnings\n"
        "with warnings.catch_warnings(record=True) as caught:\n"
        "    warnings.simplefilter('always')\n"
        "    import memrt\n"
        "print(*[each.message for each in caught])\n"
        "print(memrt.debug.limits()[0].soft)\n",
        env={"MEMRT_LIMIT": "16M", "MEMRT_SOFT_LIMIT": "17M"},
    )
    assert result.stdout.startswith("MEMRT_SOFT_LIMIT must be at most MEMRT_LIMIT")
    assert result.stdout.endswith("\nNone\n")


def test_run_command_sets_soft_limit(run_program, tmp_path):
    program = tmp_path / "program.py"
    program.write_text("import memrt\nprint(memrt.debug.limits()[0].soft)\n")
    command = (sys.executable, "-m", "memrt", "run", "--quiet", "--limit", "64M")
    soft = run_program(*command, "--soft-limit", "auto", str(program))
    assert soft.stdout == f"{64 * MIB // 10 * 9}\n"
    refused = run_program(*command, "--soft-limit", "65M", str(program), check=False)
    assert "--limit: soft limit must be at most the limit" in refused.stderr
