"""Write the statistics as JSON, and read the JSON schema of the statistics."""

from __future__ import annotations

import json
import os
import time
from typing import Any

from memrt import _memrt
from memrt._policy.live_policies import policies as live_policies
from memrt._policy.policy import Policy
from memrt._policy.scope import Scope
from memrt._policy.scope_tree import scopes as scope_tree
from memrt._process.account import process_memory
from memrt._stats.latency import latency
from memrt._stats.snapshot import stats
from memrt._support.public import public


@public("memrt.telemetry")
def stats_json(*, indent: int | None = None, memory: bool = False) -> str:
    """Return the statistics of the process and of all policies and scopes as JSON text.

    The text conforms to the schema that :func:`stats_schema` returns. The member ``version`` is the
    version of the schema. The version changes when a member is removed or gets another meaning. A
    new member does not change the version. The member ``latency`` exists if a path was measured.

    Parameters
    ----------
    indent : int, optional
        Spaces of indentation per level. None: all in one line.
    memory : bool, default False
        Whether to include the account of the memory of the whole process, from
        :func:`memrt.debug.process_memory`. The account takes milliseconds.

    Returns
    -------
    str
        JSON text.

    Raises
    ------
    OSError
        A file of /proc for the account cannot be read.

    Examples
    --------
    >>> import memrt, json
    >>> document = json.loads(memrt.telemetry.stats_json())
    >>> document["format"], document["policies"][0]["name"]
    ('memrt-stats', 'default')
    """
    document = stats_document()
    if times := latency():
        document["latency"] = {path: time.to_dict() for path, time in times.items()}
    if memory:
        document["memory"] = process_memory().to_dict()
    return json.dumps(document, indent=indent)


@public("memrt.telemetry")
def stats_schema() -> dict[str, Any]:
    """Return the JSON schema of the text that :func:`stats_json` returns.

    Returns
    -------
    dict
        JSON schema, draft 2020-12.

    Examples
    --------
    >>> import memrt
    >>> sorted(memrt.telemetry.stats_schema()["properties"])[:3]
    ['format', 'latency', 'memory']
    """
    from importlib.resources import files  # slow to import

    text = files("memrt").joinpath("schemas", "stats.json").read_text(encoding="utf-8")
    schema: dict[str, Any] = json.loads(text)
    return schema


def stats_document() -> dict[str, Any]:
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
