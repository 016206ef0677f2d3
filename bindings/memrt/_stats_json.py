"""The statistics as JSON, and the schema that this keeps to."""

from __future__ import annotations

import json
import os
import time
from importlib.resources import files
from typing import Any

from memrt import _memrt
from memrt._policy import Policy
from memrt._policy import policies as live_policies
from memrt._scopes import Scope
from memrt._scopes import scopes as scope_tree
from memrt._stats import stats


def stats_json(*, indent: int | None = None) -> str:
    """The statistics of the process, of its policies and of its scopes as JSON.

    It keeps to the schema that :func:`stats_schema` gives. A member ``version`` says which: it
    changes when a member goes or means something else, not when one is added.

    Args:
        indent: spaces by which lines are indented; None: all in one line.
    """
    return json.dumps(_document(), indent=indent)


def stats_schema() -> dict[str, Any]:
    """The JSON schema of what :func:`stats_json` gives."""
    text = files("memrt").joinpath("schemas", "stats.json").read_text(encoding="utf-8")
    schema: dict[str, Any] = json.loads(text)
    return schema


def _document() -> dict[str, Any]:
    return {
        "format": "memrt-stats",
        "version": 1,
        "memrt": _memrt.features()["version"],
        "pid": os.getpid(),
        "time": time.time(),
        "process": stats().to_dict(),
        "policies": [_policy(policy) for policy in live_policies()],
        "scopes": [_scope(scope) for scope in scope_tree()],
    }


def _policy(policy: Policy) -> dict[str, Any]:
    return {
        "index": policy._index,
        "name": policy.name,
        "alignment": policy.alignment,
        "options": policy.options,
        "stats": policy.stats().to_dict(),
    }


def _scope(scope: Scope) -> dict[str, Any]:
    return {"path": list(scope.path), "stats": scope.stats().to_dict()}
