"""Register marks, options and a fixture with pytest, to check and measure the memory of tests.

pytest loads the module in every run. The module therefore imports memrt and NumPy only when a test
uses a mark or the fixture, or with ``--memrt``.
"""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from memrt.pytest_plugin import Track

MARKS = {
    "memrt_no_leaks": "memrt_no_leaks(ignore=()): fail if a buffer that the test allocated in memrt"
    " is live after teardown; ignore: patterns of names, policies or places, or a function",
    "memrt_limit_peak": "memrt_limit_peak(limit): fail if the test body has more memory of memrt in"
    " use at once, above the use at the start; limit: bytes, or a text like '20 MB'",
    "memrt_limit_growth": "memrt_limit_growth(limit): fail if the test leaves more memory of memrt"
    " in use; limit: bytes, or a text like '1 MB'",
    "memrt_limit_process": "memrt_limit_process(limit): fail if the test body makes the whole"
    " process larger in memory, with Python's objects and native memory; limit: bytes, or a text"
    " like '50 MB'",
}
LIMITS = {
    "memrt_limit_peak": "limit of memory in use at once, for tests without the mark, like '20 MB'",
    "memrt_limit_growth": "limit of memory left in use, for tests without the mark, like '1 MB'",
    "memrt_limit_process": "limit of the rise of the process's memory, for tests without the mark,"
    " like '50 MB'",
}
NO_LEAKS = "memrt_no_leaks"
NO_LEAKS_HELP = "fail each test that leaks a buffer, unless the test has the mark"
FIXTURE = "memrt_track"
PLUGIN = "memrt measuring"


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("memrt", "memory of tests")
    group.addoption(
        "--memrt",
        action="store_true",
        help="run all tests with NumPy on memrt, and list the tests with the highest peaks",
    )
    group.addoption(
        "--memrt-top",
        type=int,
        default=10,
        metavar="N",
        help="number of tests that --memrt lists; 0: all (default: 10)",
    )
    group.addoption(
        "--memrt-report",
        metavar="DIR",
        help="as --memrt; also write the figures of all tests, and a recording for each test that"
        " leaks or grows, to DIR",
    )
    for name, text in LIMITS.items():
        group.addoption(_option(name), metavar="SIZE", help=text)
        parser.addini(name, text, type="string", default="")
    group.addoption(_option(NO_LEAKS), action="store_true", help=NO_LEAKS_HELP)
    parser.addini(NO_LEAKS, NO_LEAKS_HELP, type="bool", default=False)


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _default_marks(config: pytest.Config) -> dict[str, Any]:
    """Return the arguments of marks for all tests; the command line precedes the configuration."""
    chosen = {name: config.getoption(name) or config.getini(name) for name in (*LIMITS, NO_LEAKS)}
    return {name: value for name, value in chosen.items() if value}


def pytest_configure(config: pytest.Config) -> None:
    for line in MARKS.values():
        config.addinivalue_line("markers", line)
    defaults = _default_marks(config)
    if config.getoption("memrt") or config.getoption("memrt_report") or defaults:
        _start_measuring(config)
    if defaults:
        from memrt.pytest_plugin import set_default_marks

        set_default_marks(config, defaults)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    asking = [item for item in items if _asks(item)]
    if asking:
        _start_measuring(config)
        from memrt.pytest_plugin import check_marks

        check_marks(asking)


def _asks(item: pytest.Item) -> bool:
    by_mark = any(mark.name in MARKS for mark in item.iter_markers())
    return by_mark or FIXTURE in getattr(item, "fixturenames", ())


def _start_measuring(config: pytest.Config) -> None:
    if not config.pluginmanager.hasplugin(PLUGIN):
        with _python_imports(config):
            from memrt.pytest_plugin import Measuring

        config.pluginmanager.register(Measuring(config), PLUGIN)


@contextmanager
def _python_imports(config: pytest.Config) -> Iterator[None]:
    """Suspend pytest's import hook, which compiles all modules of memrt to rewrite assertions."""
    hook: Any = config.pluginmanager.rewrite_hook
    position = sys.meta_path.index(hook) if hook in sys.meta_path else None
    if position is not None:
        sys.meta_path.remove(hook)
    try:
        yield
    finally:
        if position is not None:
            sys.meta_path.insert(position, hook)


@pytest.fixture
def memrt_track(request: pytest.FixtureRequest) -> Track:
    """Return the memory of the running test: ``.live()``, ``.stats`` and ``.peak``."""
    from memrt.pytest_plugin import track_of

    return track_of(request.node)
