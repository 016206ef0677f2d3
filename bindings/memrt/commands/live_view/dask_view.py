"""``python -m memrt top --dask``: show the workers and the task prefixes of a Dask cluster."""

from __future__ import annotations

import argparse
import json
import sys
import time
from typing import Any

from memrt._dask.cluster_figures import (
    KEY_COLUMNS,
    PREFIX_COLUMNS,
    WORKER_SIZES,
    Cluster,
    sum_up,
)
from memrt._support.units import human_bytes, plural
from memrt.commands.live_view.layout import plain_text
from memrt.commands.live_view.tables import Row, Table
from memrt.commands.output.errors import CommandError

MOST_ROWS = 20
TIMEOUT = 10
"""Seconds for the connection to the scheduler."""
_CLEAR = "\x1b[H\x1b[2J"


def show_cluster(arguments: argparse.Namespace) -> None:
    """Print the figures of a cluster once, or at each interval in a terminal."""
    for name in ("pid", "record"):
        if getattr(arguments, name) is not None:
            raise CommandError(f"--dask must be without {name}: it shows a whole cluster")
    client = _connect(arguments.dask)
    try:
        if arguments.json:
            print(json.dumps(_document(_read(client)), indent=2))
        elif arguments.once or not sys.stdout.isatty():
            print(text(_read(client)))
        else:
            until = time.monotonic() + arguments.seconds
            while time.monotonic() < until:
                print(f"{_CLEAR}{text(_read(client))}\n\nCtrl-C ends", flush=True)
                time.sleep(min(arguments.interval, max(until - time.monotonic(), 0)))
    except KeyboardInterrupt:
        pass
    except OSError as error:
        raise CommandError(f"the scheduler at {arguments.dask} has ended: {error}") from None
    finally:
        client.close()


def _connect(address: str) -> Any:
    try:
        from distributed import Client
    except ImportError:
        raise CommandError("--dask needs distributed: pip install 'memrt[dask]'") from None
    try:
        return Client(address, timeout=TIMEOUT, set_as_default=False)
    except (OSError, ValueError, TimeoutError) as error:
        raise CommandError(
            f"--dask must be the address of a scheduler, got {address!r}: {error}"
        ) from None


def _read(client: Any) -> Cluster:
    workers = client.scheduler_info(n_workers=-1)["workers"]
    return sum_up({address: each["metrics"] for address, each in workers.items()})


def _document(cluster: Cluster) -> dict[str, Any]:
    return {
        "format": "memrt-top-dask",
        "version": 1,
        "workers": cluster.workers,
        "prefixes": [dict(zip(PREFIX_COLUMNS, row, strict=True)) for row in cluster.prefixes],
        "keys": [dict(zip(KEY_COLUMNS, row, strict=True)) for row in cluster.keys],
        "sites": [{"place": place, "live": size} for place, size in cluster.sites],
        "without_memrt": cluster.without,
    }


def text(cluster: Cluster) -> str:
    """Return the tables of a cluster as text."""
    title = plural(len(cluster.workers), "worker")
    if cluster.without:
        title += f"; {cluster.without:,} without memrt: run memrt.dask.install(client)"
    workers = [
        Row([address, *(_size(each[name]) for name in WORKER_SIZES)])
        for address, each in list(cluster.workers.items())[:MOST_ROWS]
    ]
    tables = [Table(title, ["worker", *WORKER_SIZES], workers)]
    if cluster.prefixes:
        rows = _task_rows(cluster.prefixes)
        tables.append(Table("Live bytes by prefix", list(PREFIX_COLUMNS), rows))
    if cluster.keys:
        tables.append(Table("Highest peaks by key", list(KEY_COLUMNS), _task_rows(cluster.keys)))
    if cluster.sites:
        sites = [Row([place, human_bytes(size)]) for place, size in cluster.sites[:MOST_ROWS]]
        tables.append(Table("Sampled allocation sites", ["site", "live"], sites))
    return plain_text(tables, "live")


def _task_rows(rows: list[list[Any]]) -> list[Row]:
    return [
        Row([name, f"{tasks:,}", *map(human_bytes, sizes)])
        for name, tasks, *sizes in rows[:MOST_ROWS]
    ]


def _size(size: int | None) -> str:
    return "none" if size is None else human_bytes(size)
