"""Tests of models.py: every memory order of the sources is found, and is weakened separately."""

import re
import subprocess

import models
import pytest


@pytest.mark.parametrize("model", models.all_models())
def test_model_compiles_with_the_sources_of_today(model):
    flags = (*models.FLAGS, "-Werror=incompatible-pointer-types", "-DMODEL_HAS_CONDITIONS")
    flags += (f"-DMEMRT_COUNTERS={int(model in models.COUNTING)}", "-fsyntax-only")
    source = models.source_of(model)
    result = subprocess.run(
        ["cc", *flags, source], cwd=models.ROOT, capture_output=True, text=True, check=False
    )
    assert (result.stderr, result.returncode) == ("", 0)


def test_every_operation_with_an_order_is_known():
    text = (models.ROOT / "runtime" / "base" / "atomics.h").read_text(encoding="utf-8")
    ordered = set(re.findall(r"memrt__(\w+_(?:acquire|release))\(", text))
    assert ordered == set(models.WEAKER)


def test_every_listed_order_exists():
    there = {(order.file, order.code) for order in models.orders()}
    assert len(there) > 20
    assert models.excused().keys() <= there
    assert all(reason for reason in models.excused().values())


def test_order_is_weakened_in_one_place(tmp_path, monkeypatch):
    monkeypatch.setattr(models, "WORK", tmp_path)
    order = next(iter(models.orders()))
    before = (models.ROOT / order.file).read_text(encoding="utf-8").splitlines()
    after = (models.without(order) / order.file).read_text(encoding="utf-8").splitlines()
    changed = [n for n, (old, new) in enumerate(zip(before, after, strict=True), 1) if old != new]
    assert changed == [order.line]
    assert models.WEAKER[order.operation] in after[order.line - 1]
