"""Page /memrt of the scheduler's dashboard. Imports distributed; the page needs Bokeh."""

from __future__ import annotations

from collections import deque
from time import time
from typing import Any

from distributed.diagnostics.plugin import SchedulerPlugin
from tornado.ioloop import IOLoop, PeriodicCallback

from memrt._dask.cluster_figures import (
    KEY_COLUMNS,
    PREFIX_COLUMNS,
    WORKER_SIZES,
    Cluster,
    sum_up,
)

NAME = "memrt-dashboard"
"""Name of the plugin in distributed."""
PATH = "/memrt"
PERIOD = 1.0
"""Seconds between two samples."""
MOST_SAMPLES = 600
MOST_SERIES = 8
MOST_ROWS = 40
_PARTS = {"live": "#3b7dd8", "cached": "#9cc3f5", "other": "#b5b5b5"}
_HUES = ("#3b7dd8", "#e08214", "#4dac26", "#d01c8b", "#7b3294", "#01857a", "#a6761d", "#666666")


class DashboardPlugin(SchedulerPlugin):  # type: ignore[misc]
    """Plugin that samples the workers, and adds the page to the dashboard of the scheduler."""

    idempotent = True

    async def start(self, scheduler: Any) -> None:
        """Start to sample, and add the page. Without Bokeh, there is no page."""
        self.scheduler = scheduler
        self.samples: deque[tuple[float, dict[str, int]]] = deque(maxlen=MOST_SAMPLES)
        self._sampling = PeriodicCallback(self.sample, PERIOD * 1000)
        self._sampling.start()
        add_page(scheduler)

    async def close(self) -> None:
        """End the samples."""
        self._sampling.stop()

    def sample(self) -> None:
        """Keep the live bytes by prefix of this moment."""
        prefixes = read_cluster(self.scheduler).prefixes
        self.samples.append((time(), {name: live for name, _, live, *_ in prefixes}))


def read_cluster(scheduler: Any) -> Cluster:
    """Return the figures of the workers from their last heartbeats."""
    return sum_up({each.address: each.metrics for each in scheduler.workers.values()})


def add_page(scheduler: Any) -> None:
    """Add the page, unless the scheduler has the page or no dashboard."""
    try:
        from bokeh.server.tornado import BokehTornado
        from distributed.dashboard.core import BokehApplication
        from distributed.dashboard.scheduler import template_variables
    except ImportError:
        return
    applications = getattr(getattr(scheduler, "http_application", None), "applications", [])
    dashboards = [each for each in applications if isinstance(each, BokehTornado)]
    if not dashboards or any(PATH in each.app_paths for each in dashboards):
        return
    variables = template_variables(scheduler)
    if "memrt" not in variables["pages"]:
        variables["pages"].append("memrt")  # the links at the top of all pages
    prefix = dashboards[0].prefix
    page = BokehApplication({PATH: draw}, scheduler, prefix=prefix, template_variables=variables)
    scheduler.http_application.add_application(page)
    page.initialize(IOLoop.current())
    page.start()


def draw(scheduler: Any, extra: dict[str, Any], document: Any) -> None:
    """Draw the page for one viewer, with an update each second."""
    from bokeh.layouts import column
    from distributed.dashboard.components.scheduler import BOKEH_THEME, env

    view = _View(scheduler)
    view.update()
    document.title = "Dask: memrt"
    document.add_root(column(view.roots, sizing_mode="stretch_width"))
    document.add_periodic_callback(view.update, int(PERIOD * 1000))
    document.template = env.get_template("simple.html")
    document.template_variables.update(extra)
    document.theme = BOKEH_THEME


class _View:
    """Charts and tables of one viewer."""

    def __init__(self, scheduler: Any) -> None:
        from bokeh.models import ColumnDataSource

        self._scheduler = scheduler
        self._time, self._workers, self._prefixes, self._keys, self._sites = (
            ColumnDataSource(dict[str, list[Any]]()) for _ in range(5)
        )
        self._names: list[str] = []
        self._timeline = _figure(
            "Live bytes of the cluster by prefix", "yaxis", x_axis_type="datetime"
        )
        self._bars = _bars(self._workers)
        self.roots = [
            self._timeline,
            self._bars,
            *_table("Task prefixes", self._prefixes, PREFIX_COLUMNS),
            *_table("Highest peaks by key", self._keys, KEY_COLUMNS),
            *_table("Sampled allocation sites", self._sites, ("site", "live")),
        ]

    def update(self) -> None:
        """Show the last heartbeats."""
        cluster = read_cluster(self._scheduler)
        plugin = self._scheduler.plugins.get(NAME)
        self._show_time(list(plugin.samples) if plugin is not None else [])
        self._workers.data = worker_columns(cluster)
        self._bars.y_range.factors = list(self._workers.data["worker"])
        self._prefixes.data = text_columns(PREFIX_COLUMNS, cluster.prefixes)
        self._keys.data = text_columns(KEY_COLUMNS, cluster.keys)
        self._sites.data = text_columns(("site", "live"), cluster.sites)

    def _show_time(self, samples: list[tuple[float, dict[str, int]]]) -> None:
        """Show the timeline. New prefixes get an area of their own."""
        columns = time_columns(samples)
        names = [name for name in columns if name != "time"]
        self._time.data = columns
        if names != self._names:
            self._names = names
            self._timeline.renderers = []
            if self._timeline.legend:
                self._timeline.legend.items = []
            if names:
                hues = [_HUES[i % len(_HUES)] for i in range(len(names))]
                self._timeline.varea_stack(
                    names, x="time", source=self._time, color=hues, legend_label=names
                )
                self._timeline.legend.location = "top_left"


def _figure(title: str, axis_of_bytes: str, **options: Any) -> Any:
    from bokeh.models import NumeralTickFormatter
    from bokeh.plotting import figure

    drawn = figure(title=title, height=260, tools="", sizing_mode="stretch_width", **options)
    drawn.toolbar_location = None
    getattr(drawn, axis_of_bytes).formatter = NumeralTickFormatter(format="0.0 b")
    return drawn


def _bars(source: Any) -> Any:
    """Return bars of live, cached and other memory of the workers, with a mark at the limit."""
    from bokeh.models import FactorRange

    title = "Workers: live, cached and other memory; the mark is the limit of live bytes"
    drawn = _figure(title, "xaxis", y_range=FactorRange())
    drawn.hbar_stack(
        list(_PARTS), y="worker", height=0.8, source=source,
        color=list(_PARTS.values()), legend_label=list(_PARTS),
    )  # fmt: skip
    drawn.scatter(
        "limit", "worker", source=source, marker="dash", angle=1.5708, size=24, line_color="#d01c1c"
    )
    return drawn


def _table(title: str, source: Any, names: tuple[str, ...]) -> list[Any]:
    from bokeh.models import DataTable, Div, TableColumn

    columns = [TableColumn(field=name, title=name) for name in names]
    table = DataTable(source=source, columns=columns, height=200, sizing_mode="stretch_width")
    return [Div(text=f"<b>{title}</b>"), table]


# --- The data of the page. ---


def time_columns(samples: list[tuple[float, dict[str, int]]]) -> dict[str, list[Any]]:
    """Return times in milliseconds, and live bytes of the largest prefixes and of the rest."""
    most: dict[str, int] = {}
    for _, sizes in samples:
        for name, size in sizes.items():
            most[name] = max(most.get(name, 0), size)
    names = sorted(most, key=lambda name: -most[name])[:MOST_SERIES]
    columns: dict[str, list[Any]] = {"time": [1000 * when for when, _ in samples]}
    for name in sorted(names):
        columns[f"{name} "] = [sizes.get(name, 0) for _, sizes in samples]
    if len(most) > len(names):
        columns["other prefixes"] = [
            sum(size for name, size in sizes.items() if name not in names) for _, sizes in samples
        ]
    return columns


def worker_columns(cluster: Cluster) -> dict[str, list[Any]]:
    """Return the columns of the bars, for the workers with the most live bytes."""
    rows = list(cluster.workers.items())[:MOST_ROWS]
    columns: dict[str, list[Any]] = {"worker": [address for address, _ in rows]}
    for name in WORKER_SIZES:
        columns[name] = [each[name] for _, each in rows]
    return columns


def text_columns(names: tuple[str, ...], rows: list[list[Any]]) -> dict[str, list[str]]:
    """Return rows as columns of text. Columns of bytes have units."""
    from memrt._support.units import human_bytes

    sizes = {"live", "peak", "outlived", "result"}
    return {
        name: [human_bytes(row[i]) if name in sizes else str(row[i]) for row in rows[:MOST_ROWS]]
        for i, name in enumerate(names)
    }
