"""Calls of tasks in a scope and on a policy, with the account of a prefix."""

from __future__ import annotations

import contextvars

import memrt
import numpy as np
import pytest
from memrt import _memrt
from memrt._dask import tasks
from memrt._policy.policy import default_policy

DONE = {"op": "task-finished", "nbytes": 800}
VALUE = contextvars.ContextVar("value", default=0)


@pytest.fixture(autouse=True)
def prefixes():
    """Forget the prefixes of a test, whose slots hold policies."""
    yield
    tasks._prefixes.clear()


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
    with pytest.raises(AttributeError):  # a message that is no dict
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
    assert (entry.account.read()[0], entry.slots) == (6, 2)
    assert not tasks.prefix_rows()[-1][-1]


def test_threads_above_the_maximum_share_slots(monkeypatch):
    monkeypatch.setattr(tasks, "MOST_SLOTS", 2)
    monkeypatch.setattr(tasks, "get_ident", iter(range(5)).__next__)
    for _ in range(5):
        run("many-task", lambda: DONE)
    entry = tasks._prefixes["many-task"]
    assert (entry.account.read()[0], entry.slots) == (5, 2)


@pytest.mark.parametrize("arguments", [(), (1,) * 5, ("account", [], 1, 1, len)])
def test_bad_arguments_are_refused(arguments):
    if "account" in arguments:
        arguments = (_memrt.TaskAccount(), *arguments[1:])
    with pytest.raises(TypeError, match="run_task needs an account"):
        _memrt.run_task(*arguments)
    if arguments[1:2] == ([],):
        with pytest.raises(ValueError, match="PyCapsule_GetPointer"):
            _memrt.run_task(arguments[0], [None] * 5, *arguments[2:])
