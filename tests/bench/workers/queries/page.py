"""Time the opening of a report page in chromium, from the request to the complete page.

usage: python page.py JOB, a JSON object:

  buffers   number of live buffers on the page

Prints a JSON object: milliseconds of the opening, by the clock of the page, and bytes of the page.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from pathlib import Path

import memrt
from memrt._profile.page import render
from memrt._profile.recorder import Recorder
from memrt._profile.recording import Document
from playwright.sync_api import sync_playwright

KEPT = 100  # buffers that are recorded; the page has copies of their rows
SIZES = 100_000
PATIENCE = 120_000  # milliseconds
TOOK = "performance.now()"  # since the request of the page


def recorded() -> Document:
    """Record buffers of this process."""
    with memrt.debug.tracking():
        recorder = Recorder({}, tracked=True)
        recorder.start()
        kept = [memrt.alloc(1000 * (i + 1)) for i in range(KEPT)]
        recorder.stop()
        document = recorder.finish("ended")
        del kept
    return document


def page_of(buffers: int) -> bytes:
    """Return a page with `buffers` rows of different sizes."""
    document = recorded()
    rows = document["live"]["rows"]
    document["live"]["rows"] = [
        [i, i * 7919 % SIZES, *rows[i % len(rows)][2:]] for i in range(buffers)
    ]
    return render([document])


def opened(path: Path) -> float:
    """Return the milliseconds until the page is complete, in a new browser."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        page = browser.new_context(offline=True).new_page()
        page.set_default_timeout(PATIENCE)
        page.goto(path.as_uri())
        page.wait_for_selector("html[data-ready=yes]", state="attached")
        took = page.evaluate(TOOK)
        browser.close()
    return float(took)


def main() -> None:
    content = page_of(json.loads(sys.argv[1])["buffers"])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "page.html"
        path.write_bytes(content)
        print(json.dumps({"ms": opened(path), "bytes": len(content)}))


if __name__ == "__main__":
    main()
