"""Tests of models.py: every memory order of the sources is found, and is weakened separately."""

import re
import subprocess

import models
import pytest


@pytest.mark.parametrize("model", models.all_models())
def test_model_runs_with_the_sources_of_today(tmp_path, model):
    program = tmp_path / model
    flags = (*models.flags_of(model), "-Werror=incompatible-pointer-types", "-O1", "-pthread")
    flags += ("-DMODEL_HAS_CONDITIONS", "-o", program)
    # A model lacks functions that it never calls. The call of a missing function is a crash.
    flags += ("-no-pie", "-Wl,--unresolved-symbols=ignore-all")
    source = models.source_of(model)
    result = subprocess.run(
        ["cc", *flags, source], cwd=models.ROOT, capture_output=True, text=True, check=False
    )
    assert (result.stderr, result.returncode) == ("", 0)
    ran = subprocess.run([program], capture_output=True, text=True, check=False, timeout=60)
    assert (ran.stderr, ran.returncode) == ("", 0)


def test_every_operation_with_an_order_is_known():
    text = (models.ROOT / "runtime" / "base" / "atomics.h").read_text(encoding="utf-8")
    ordered = set(re.findall(r"memrt__(\w+_(?:acquire|release))\(", text))
    assert ordered == set(models.WEAKER)


def test_every_listed_order_exists():
    there = {(order.file, order.code) for order in models.orders()}
    assert len(there) > 20
    there |= {(file, models.EVERY_ORDER) for file, code in there}
    assert models.excused().keys() <= there
    assert all(reason for reason in models.excused().values())


def test_entry_of_a_line_comes_before_entry_of_its_file(monkeypatch):
    first, *rest = models.orders()
    second = next(order for order in rest if order.code != first.code)
    entries = {(first.file, first.code): "line", (first.file, models.EVERY_ORDER): "file"}
    monkeypatch.setattr(models, "excused", lambda: entries)
    assert models.entry_of(first) == (first.file, first.code)
    assert models.entry_of(second) == (second.file, models.EVERY_ORDER)


@pytest.mark.parametrize(
    ("code", "needed", "good"),
    [
        ("*", "no order", True),
        ("*", "some orders", True),
        ("*", "all orders", False),
        ("line", "no order", True),
        ("line", "all orders", False),
        ("none", "no order", False),
        ("none", "all orders", True),
    ],
)
def test_check_of_orders_needs_models_or_entries(monkeypatch, code, needed, good):
    some = [models.Order("f.c", n, f"line {n}", "load_acquire", 0) for n in (1, 2)]
    entries = {"*": ["*"], "line": ["line 1", "line 2"], "none": []}[code]
    failing = {"no order": [], "some orders": [1], "all orders": [1, 2]}[needed]
    monkeypatch.setattr(models, "orders", lambda: iter(some))
    monkeypatch.setattr(models, "excused", lambda: {("f.c", entry): "why" for entry in entries})
    monkeypatch.setattr(
        models, "needed_by", lambda order, *_: ("m", "race") if order.line in failing else ("", "")
    )
    assert bool(models.check_orders(None, {})) == good


def test_order_is_weakened_in_one_place(tmp_path, monkeypatch):
    monkeypatch.setattr(models, "WORK", tmp_path)
    order = next(iter(models.orders()))
    before = (models.ROOT / order.file).read_text(encoding="utf-8").splitlines()
    after = (models.without(order) / order.file).read_text(encoding="utf-8").splitlines()
    changed = [n for n, (old, new) in enumerate(zip(before, after, strict=True), 1) if old != new]
    assert changed == [order.line]
    assert models.WEAKER[order.operation] in after[order.line - 1]
