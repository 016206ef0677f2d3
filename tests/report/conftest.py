"""Fixtures for tests of pages: a recording of a real program, and a browser without a network."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hostile import PROGRAM
from memrt._profile.page import render
from memrt._profile.recording import loads
from playwright.sync_api import sync_playwright

PATIENCE = 60_000  # milliseconds, for a machine under load


def run_recorded(folder: Path) -> Path:
    """Run PROGRAM and return the path of its recording. The script's name is hostile, too."""
    script = folder / "<img src=x onerror=alert(1)>.py"
    script.write_text(PROGRAM)
    command = [sys.executable, "-m", "memrt", "run", "--quiet", "--html", folder / "run.html"]
    subprocess.run([*command, "--record", folder / "run", script], check=True, timeout=120)
    return folder / "run"


@pytest.fixture(scope="session")
def recorded(tmp_path_factory):
    """Return the path of a recording. The page of `run --html` is beside the recording, as
    run.html.
    """
    return run_recorded(tmp_path_factory.mktemp("recorded"))


@pytest.fixture(scope="session")
def document(recorded):
    """Return the recorded document of the program."""
    return loads(recorded.read_bytes())[0]


@pytest.fixture(scope="session")
def browser():
    """Yield a browser without a window."""
    path = shutil.which("chromium")
    assert path, "chromium is not installed: run ./dev tools report to install chromium"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()


class Visit:
    """An open page, with its errors, dialogs and requests."""

    def __init__(self, browser, **options):
        self.context = browser.new_context(offline=True, **options)
        self.page = self.context.new_page()
        self.page.set_default_timeout(PATIENCE)
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("dialog", lambda dialog: self.complaints.append(dialog.message))
        self.page.on("request", lambda request: self.requests.append(request.url))

    def open(self, path: Path):
        """Go to a file, and wait until the page is complete."""
        self.page.goto(path.as_uri())
        self.page.wait_for_selector("html[data-ready=yes]", state="attached")
        return self.page


@pytest.fixture
def visit(browser):
    """Yield a function that opens a file in the browser. At the end, verify that the pages caused
    no error and no network request.
    """
    visits: list[tuple[Visit, Path]] = []

    def open_page(path, **options):
        visits.append((Visit(browser, **options), path))
        return visits[-1][0].open(path)

    yield open_page
    for each, path in visits:
        requests = [url for url in each.requests if not url.startswith(("data:", "blob:"))]
        assert each.complaints == []
        assert requests == [path.as_uri()]
        each.context.close()


@pytest.fixture
def page(visit, recorded):
    """Return the open page of the program."""
    return visit(recorded.with_name("run.html"))


@pytest.fixture
def page_of(tmp_path, visit):
    """Return a function that opens the page of documents."""

    def make(*documents, **options):
        path = tmp_path / "made.html"
        path.write_bytes(render(list(documents)))
        return visit(path, **options)

    return make
