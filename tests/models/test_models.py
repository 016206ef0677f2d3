"""Tests of models.py: every memory order of the sources is found, and is weakened separately."""

import re

import models


def test_every_operation_with_an_order_is_known():
    text = (models.ROOT / "runtime" / "base" / "atomics.h").read_text(encoding="utf-8")
    ordered = set(re.findall(r"memrt__(\w+_(?:acquire|release))\(", text))
    assert ordered == set(models.WEAKER)


def test_every_excuse_is_of_an_order_that_there_is():
    there = {(order.file, order.code) for order in models.orders()}
    assert len(there) > 20
    assert models.excused().keys() <= there
    assert all(reason for reason in models.excused().values())


def test_an_order_is_taken_away_in_one_place(tmp_path, monkeypatch):
    monkeypatch.setattr(models, "WORK", tmp_path)
    order = next(iter(models.orders()))
    before = (models.ROOT / order.file).read_text(encoding="utf-8").splitlines()
    after = (models.without(order) / order.file).read_text(encoding="utf-8").splitlines()
    changed = [n for n, (old, new) in enumerate(zip(before, after, strict=True), 1) if old != new]
    assert changed == [order.line]
    assert models.WEAKER[order.operation] in after[order.line - 1]
