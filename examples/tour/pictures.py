"""Make the pictures of docs/tour.md: run its commands, and take what a browser shows.

Usage: python examples/tour/pictures.py CHROMIUM

`./dev tour` calls it.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

ROOT = Path(__file__).resolve().parents[2]
PICTURES = ROOT / "docs" / "pictures"
WINDOW = {"width": 900, "height": 900}
COMMANDS = (
    "run --html sky.html --record sky.memrt --plot timeline.png sky.py",
    "run --quiet --children --html workers.html workers.py",
)
"""What docs/tour.md has people call, in the folder of its programs."""

SHOTS = {
    "overview": ("sky.html", "#overview"),
    "chart": ("sky.html", "#timeline"),
    "peak": ("sky.html", "#highest"),
    "flame": ("sky.html", "#flame"),
    "retention": ("sky.html", "#retention"),
    "workers": ("workers.html", "#together"),
}


def make(folder: Path) -> None:
    """Run the commands; their files are in `folder`."""
    for program in Path(__file__).parent.glob("*.py"):
        (folder / program.name).write_bytes(program.read_bytes())
    for command in COMMANDS:
        subprocess.run([sys.executable, "-m", "memrt", *command.split()], cwd=folder, check=True)
    (PICTURES / "timeline.png").write_bytes((folder / "timeline.png").read_bytes())


def shoot(page: Page, folder: Path, name: str) -> None:
    """Take one section of a page."""
    file, section = SHOTS[name]
    page.goto((folder / file).as_uri())
    page.wait_for_selector("html[data-ready=yes]", state="attached")
    if name == "retention":
        page.locator("#retention summary").first.click()
    page.locator(section).screenshot(path=PICTURES / f"{name}.png")


def main(chromium: str) -> None:
    PICTURES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as name, sync_playwright() as playwright:
        folder = Path(name)
        make(folder)
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport=WINDOW)
        for shot in SHOTS:
            shoot(page, folder, shot)
        browser.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
