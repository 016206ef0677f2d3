"""Calls of tasks in a scope and on a policy, with the account of a prefix."""

from __future__ import annotations

import contextvars
import json
import subprocess
import sys

import memrt
import numpy as np
import pytest
from memrt import _memrt
from memrt._dask import task_keys, tasks
from memrt._policy.live_policies import default_policy

DONE = {"op": "task-finished", "nbytes": 800}
VALUE = contextvars.ContextVar("value", default=0)


@pytest.fixture(autouse=True)
def prefixes():
    """Forget the prefixes of a test, whose slots hold policies."""
    yield
    tasks._prefixes.clear()
    task_keys._keys.clear()
    task_keys._ranking.clear()


def row_of(prefix):
    (row,) = [row for row in tasks.task_rows() if row["prefix"] == prefix]
    return row


def run(prefix, function, *arguments, policy=None):
    return tasks.run_task(prefix, policy or default_policy(), function, *arguments)


def facts():
    """Return handler and scopes of the caller, and whether NumPy's arrays count for the scope."""
    before = memrt.current_scope().live
    array = np.zeros(1000)
    counted = memrt.current_scope().live - before == array.nbytes
    return {"facts": (memrt.handler_name(), memrt.current_scope().path, counted)}


def test_repeated_tasks_see_scope_and_policy():
    policy = memrt.Policy(name="of tasks")
    found = [run("repeated-task", facts) for _ in range(3)]
    found += [run("repeated-task", facts, policy=policy) for _ in range(2)]
    with memrt.Policy(name="around"), memrt.scope("around-task"):
        found += [run("repeated-task", facts) for _ in range(2)]
    path = ("repeated-task", "slot 1")
    names = ["memrt"] * 3 + ["memrt:of tasks"] * 2 + ["memrt"] * 2
    assert [each["facts"] for each in found] == [(name, path, True) for name in names]
    assert memrt.current_scope() is None
    assert memrt.handler_name() == "default_allocator"


def test_blocks_inside_a_task_end_inside():
    def nested():
        with memrt.scope("inner") as inner, memrt.Policy(name="inner") as policy:
            array = np.zeros(1000)
        outside = np.zeros(10)
        found = (inner.live, policy.stats().live, memrt.handler_name(), outside.nbytes)
        return {"found": found, "array": array}

    for _ in range(2):
        assert run("inside-task", nested)["found"] == (8000, 8000, "memrt", 80)
    assert row_of("inside-task")["live"] == 0


def test_context_of_a_task_is_a_copy():
    VALUE.set(1)
    assert run("copied-task", lambda: {"value": VALUE.get(), "token": VALUE.set(2)})["value"] == 1
    assert VALUE.get() == 1


def test_figures_of_tasks():
    kept = []

    def work(size, message):
        np.zeros(2 * size)
        kept.append(np.zeros(size))
        return message

    for size in (100, 50):
        run("counted-task", work, size, DONE)
    assert row_of("counted-task") == {
        "prefix": "counted-task", "tasks": 2, "errors": 0, "failed": 0, "live": 1200,
        "peak": 1600, "peak_error": 0, "result": 800, "kept": 1200, "temporary": 2400,
    }  # fmt: skip
    run("counted-task", work, 1000, {"op": "task-finished", "nbytes": np.float64(8000)})
    assert row_of("counted-task")["result"] == 8000
    for message in ({"op": "task-finished"}, {"op": "task-finished", "nbytes": "none"}):
        run("counted-task", work, 1000 * (len(message) + 1), message)
        assert row_of("counted-task")["result"] == 0
    kept.clear()
    assert row_of("counted-task")["live"] == 0


@pytest.mark.parametrize("message", [{}, {"op": 1}, {"op": "task-erred"}])
def test_task_without_success_is_an_error(message):
    assert run("wrong-task", lambda: message) is message
    assert row_of("wrong-task")["errors"] == 1


def test_exception_of_a_task_propagates():
    def fail():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run("raising-task", fail)
    with pytest.raises(AttributeError):  # the message must be a dict
        run("raising-task", lambda: None)
    with pytest.raises(AttributeError):
        run("raising-task", lambda: DONE, policy="no policy")
    account = tasks._prefixes["raising-task"].account
    assert account.read()[:2] == (3, 3)
    assert account.read()[-1] == 0


def test_task_inside_a_task_has_a_slot():
    def outer():
        assert tasks.prefix_rows()[-1][-1]
        return run("nested-task", lambda: DONE)

    for _ in range(3):
        run("nested-task", outer)
    entry = tasks._prefixes["nested-task"]
    assert (entry.account.read()[0], entry.pool.slots) == (6, 2)
    assert not tasks.prefix_rows()[-1][-1]


def test_threads_above_the_maximum_share_slots(monkeypatch):
    monkeypatch.setattr(tasks, "MOST_SLOTS", 2)
    monkeypatch.setattr(tasks, "get_ident", iter(range(5)).__next__)
    for _ in range(5):
        run("many-task", lambda: DONE)
    entry = tasks._prefixes["many-task"]
    assert (entry.account.read()[0], entry.pool.slots) == (5, 2)


def test_prefix_without_room_counts_in_a_shared_scope(monkeypatch):
    monkeypatch.setattr(tasks, "MOST_SCOPES", tasks._opened + 2)
    first, late = run("first-task", facts), run("late-task", facts)
    nested = run("first-task", lambda: run("first-task", facts))
    paths = [each["facts"][1:] for each in (first, late, nested)]
    shared = (("other tasks", "slot 1"), True)
    assert paths == [(("first-task", "slot 1"), True), shared, shared]
    result = run("late-task", lambda: {**DONE, "result": np.zeros(100)})
    assert len(result) == 3
    row, others = row_of("late-task"), row_of("other tasks")
    assert (row["tasks"], row["peak"], row["kept"], row["live"]) == (2, 8000, 800, 0)
    assert (others["tasks"], others["live"]) == (0, 800)
    (heartbeat,) = [each for each in tasks.prefix_rows() if each[0] == "other tasks"]
    assert heartbeat[-1]  # the scope has results of other prefixes


def test_threads_without_room_share_slots(monkeypatch):
    monkeypatch.setattr(tasks, "MOST_SCOPES", tasks._opened + 2)
    monkeypatch.setattr(tasks, "get_ident", iter(range(3)).__next__)
    for _ in range(3):
        run("sharing-task", lambda: DONE)
    entry = tasks._prefixes["sharing-task"]
    assert (entry.account.read()[0], entry.pool.slots, [*tasks._prefixes]) == (
        3, 1, ["sharing-task"],
    )  # fmt: skip


def test_prefixes_above_the_maximum_share_a_row(monkeypatch):
    monkeypatch.setattr(tasks, "MOST_PREFIXES", 1)
    for prefix in ("one-task", "two-task", "three-task"):
        run(prefix, lambda: DONE)
    assert [(row["prefix"], row["tasks"]) for row in tasks.task_rows()] == [
        ("one-task", 1), ("other tasks", 2),
    ]  # fmt: skip


FULL = """
import json
import memrt
import numpy as np
from memrt._dask import tasks
from memrt._policy.live_policies import default_policy
from memrt._policy.scope import open_scope
def fill(create):
    held = []
    try:
        while True:
            held.append(create(str(len(held))))
    except RuntimeError:
        return held
def work():
    scope = memrt.current_scope()
    array = np.zeros(10)
    found = (memrt.handler_name(), memrt.is_managed(array), scope and scope.path)
    return {"op": "task-finished", "nbytes": 80, "found": found}
def run(prefix):
    return tasks.run_task(prefix, default_policy(), work)["found"]
policies = fill(lambda name: memrt.Policy(name=name))
found = [run("three"), run("three")]
del policies
found.append(run("three"))  # memrt waits for the next attempt
tasks._next_entry = 0.0
found.append(run("three"))
scopes = fill(lambda name: open_scope(None, name))
found += [run("one"), run("one")]
del scopes[:2]
found.append(run("two"))  # memrt waits for the next attempt
tasks._next_attempt = 0.0
found += [run("two"), run("one")]
rows = [[row["prefix"], row["tasks"], row["peak"]] for row in tasks.task_rows()]
print(json.dumps([found, rows]))
"""


def test_tasks_run_without_room_for_scopes_and_policies():
    output = subprocess.check_output([sys.executable, "-c", FULL], text=True, timeout=100)
    found, rows = json.loads(output)
    without = ["memrt", True, None]
    two, three = (["memrt", True, [name, "slot 1"]] for name in ("two", "three"))
    assert found == [*[without] * 3, three, *[without] * 3, two, without]
    assert rows == [["three", 4, 80], ["one", 3, 0], ["other tasks", 0, 0], ["two", 2, 80]]


def run_key(key, prefix, function, *arguments):
    return task_keys.run_key(key, prefix, default_policy(), function, *arguments)


def test_key_counts_in_its_scope_and_in_the_prefix():
    found = [run_key(("keyed-task-1", 0), "keyed-task", facts) for _ in range(2)]
    path = ("keyed-task", "('keyed-task-1', 0)")
    assert [each["facts"] for each in found] == [("memrt", path, True)] * 2
    result = run_key(b"2", "keyed-task", lambda: {**DONE, "result": np.zeros(100)})
    assert len(result) == 3
    first, second = task_keys.key_rows()
    assert first == {
        "key": "('keyed-task-1', 0)", "prefix": "keyed-task", "tasks": 2, "errors": 2, "failed": 0,
        "live": 0, "peak": 8000, "peak_error": 0, "result": 0, "kept": 0, "temporary": 16000,
    }  # fmt: skip
    assert (second["key"], second["live"], second["kept"]) == ("b'2'", 800, 800)
    assert second["errors"] == 0
    row = row_of("keyed-task")
    assert (row["tasks"], row["live"], row["peak"], row["kept"]) == (3, 800, 8000, 800)
    assert task_keys.highest_keys(1) == [["('keyed-task-1', 0)", 2, 0, 8000, 0]]
    assert "keyed-task-1" in repr(tasks.TaskStats(**first))


def test_keys_with_the_highest_peaks_are_kept(monkeypatch):
    def work(size):
        np.zeros(size)
        return DONE

    monkeypatch.setattr(task_keys, "MOST_KEYS", 2)
    monkeypatch.setattr(task_keys, "_opened", 0)
    for key, size in (("a", 30), ("b", 10), ("a", 60), ("c", 20), ("d", 40), ("e", 10), ("f", 50)):
        run_key(key, "ranked-task", work, size)
    assert {row["key"]: row["peak"] for row in task_keys.key_rows()} == {"a": 480, "f": 400}
    assert task_keys._keys["f"].scope is None  # a and b have the scopes
    assert row_of("ranked-task")["tasks"] == 7


def test_key_dropped_while_a_task_runs_is_kept_again(monkeypatch):
    monkeypatch.setattr(task_keys, "MOST_KEYS", 1)

    def work():
        run_key("inner", "dropped-task", lambda: DONE)
        run_key("other", "dropped-task", facts)
        np.zeros(2000)
        return DONE

    run_key("inner", "dropped-task", lambda: run_key("inner", "dropped-task", work))
    assert [(row["key"], row["tasks"]) for row in task_keys.key_rows()] == [("inner", 3)]


def test_keys_without_room_run_in_the_scope_of_the_thread(monkeypatch):
    monkeypatch.setattr(task_keys, "MOST_KEYS", 0)
    found = [run_key("no room", "narrow-task", facts) for _ in range(2)]
    assert [each["facts"][1:] for each in found] == [(("narrow-task", "slot 1"), True)] * 2
    run_key("no room", "narrow-task", lambda: run_key("no room", "narrow-task", lambda: DONE))
    assert tasks._prefixes["narrow-task"].pool.slots == 2
    monkeypatch.setattr(task_keys, "MOST_KEYS", 10)
    monkeypatch.setattr(tasks, "MOST_SCOPES", 0)
    assert run_key("late", "late-task", facts)["facts"][1] == ("other tasks", "slot 1")


@pytest.mark.parametrize(
    ("key", "name"),
    [
        ("x" * 63, "x" * 63),
        ("start-" + "x" * 90 + "-end", "start-" + "x" * 14 + "..." + "x" * 36 + "-end"),
        ("\u20ac" * 40, "\u20ac" * 6 + "..." + "\u20ac" * 13),
    ],
)
def test_scope_of_a_long_key_has_start_and_end(key, name):
    assert run_key(key, "long-task", facts)["facts"][1] == ("long-task", name)


def test_patterns_choose_prefixes():
    patterns = task_keys.read_patterns(["rechunk-*", "su?"])
    prefixes = ("rechunk-merge", "sum", "sums")
    chosen = [each for each in prefixes if task_keys.is_match(each, patterns)]
    assert chosen == ["rechunk-merge", "sum"]
    assert task_keys.read_patterns("*") == ("*",)
    assert not task_keys.is_match("sum", task_keys.read_patterns(()))


def test_next_task_enters_again_after_the_policy_alone():
    """The second call of `enter` finds no room for the scope, for another policy than the first."""
    calls, policies = [], [default_policy(), memrt.Policy(name="p")]

    def enter(policy):
        calls.append(policy)
        policy.__enter__()
        return len(calls) != 2

    slot = [None, enter, None, None, None]
    for policy in (policies[0], policies[1], policies[1], policies[1]):
        _memrt.run_task(_memrt.TaskAccount(), slot, policy, ignore, dict, DONE)
    assert calls == [policies[0], policies[1], policies[1]]


def ignore(message):
    """Keep the frames of a failed task."""


def test_account_around_must_be_an_account():
    with pytest.raises(TypeError, match="TaskAccount"):
        _memrt.TaskAccount("account")


@pytest.mark.parametrize("arguments", [(), (1,) * 5, ("account", [], 1, 1, len)])
def test_bad_arguments_are_refused(arguments):
    if "account" in arguments:
        arguments = (_memrt.TaskAccount(), *arguments[1:])
    with pytest.raises(TypeError, match="run_task needs an account"):
        _memrt.run_task(*arguments)
    if arguments[1:2] == ([],):
        with pytest.raises(ValueError, match="PyCapsule_GetPointer"):
            _memrt.run_task(arguments[0], [0] * 5, *arguments[2:])
