"""Make the pictures of docs/guide/tour.md and reports.md: run commands, and take screenshots.

Usage: python examples/tour/pictures.py CHROMIUM

`./dev tools tour` runs the script. Screenshots of whole pages, in all widths and color schemes, are
in build/pictures, to look at.
"""

from __future__ import annotations

import html
import io
import itertools
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright

ROOT = Path(__file__).resolve().parents[2]
PICTURES = ROOT / "docs" / "pictures"
WINDOW = {"width": 900, "height": 900}
COMMANDS = (
    "run --html sky.html --record sky.memrt --plot timeline.png sky.py",
    "run --quiet --children --html workers.html workers.py",
    "trace -o before.trace sky.py",
    "trace -o after.trace sky.py 12 copy",
    "diff before.trace after.trace",
    "replay before.trace --allocator memrt --allocator malloc",
    "convert before.trace --to perfetto -o before.perfetto",
    "convert before.trace --to speedscope -o before.speedscope.json",
    "run --quiet --share sky.py 150 &",
    "top --once",
    "top --once",
    "top --clean",
    "report sky.memrt -o again.html",
)
"""The commands of docs/guide/tour.md, run in the folder of the tour's programs."""

SHOTS = {
    "overview": ("sky.html", "#overview"),
    "chart": ("sky.html", "#timeline"),
    "peak": ("sky.html", "#highest"),
    "flame": ("sky.html", "#flame"),
    "retention": ("sky.html", "#retention"),
    "workers": ("workers.html", "#together"),
}

COMPARED = (
    "run --quiet --record fixed.memrt sky.py 12 copy",
    "report sky.memrt fixed.memrt -o compared.html",
)
"""Commands that make the comparison of docs/guide/reports.md, after COMMANDS."""

REPORTS = {
    "report-wide": ("sky.html", 1400, 1130),
    "report-narrow": ("sky.html", 400, 1130),
    "report-compared": ("compared.html", 1400, 900),
}
"""Pictures of docs/guide/reports.md: the top of a page, in a window of this width and height."""

PAGES = ("sky.html", "workers.html", "compared.html")
WIDTHS = (1400, 400)
WHOLE = ROOT / "build" / "pictures"

PRINTS = ("diff", "replay", "top", "killed")
"""Names of the pictures of command output, in the order of the page."""

ENOUGH = 200 << 20  # live bytes of the background program before `top` runs


def begin(folder: Path, command: str) -> subprocess.Popen[str]:
    """Start a command with `python` from the folder of the running interpreter."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    return subprocess.Popen(["python", "-m", "memrt", *command.split()], cwd=folder,
                            env={**os.environ, "PATH": path}, stdout=subprocess.PIPE,
                            text=True)  # fmt: skip


def call(folder: Path, command: str) -> str:
    """Run a command in the foreground, and return its standard output."""
    with begin(folder, command) as process:
        printed = process.communicate()[0]
    if process.returncode != 0:
        raise SystemExit(f"python -m memrt {command} exited with status {process.returncode}")
    return printed


def live_bytes(folder: Path) -> int:
    """Return the live bytes of all processes that share their statistics."""
    processes = json.loads(call(folder, "top --once --json"))["processes"]
    return sum(each["process"]["live"] for each in processes)


def make(folder: Path) -> dict[str, str]:
    """Run the commands with `folder` as the working directory, and return the output of PRINTS."""
    for program in Path(__file__).parent.glob("*.py"):
        (folder / program.name).write_bytes(program.read_bytes())
    printed, background = [], []
    for command in COMMANDS:
        if command.endswith(" &"):
            background.append(begin(folder, command.removesuffix(" &")))
            while live_bytes(folder) < ENOUGH:
                time.sleep(0.2)
            continue
        printed.append(call(folder, command))
        if command == "top --once":
            for process in background:
                process.kill()
                process.wait()
    (PICTURES / "timeline.png").write_bytes((folder / "timeline.png").read_bytes())
    shown = [text for text in printed if text.count("\n") > 1]
    return dict(zip(PRINTS, shown, strict=True))


def write_down(page: Page, text: str, name: str) -> None:
    """Render a text as in a terminal, and save the picture."""
    page.set_content(
        "<body style='margin:0'><pre style='display:inline-block; margin:0; padding:12px; "
        f"background:#1d1f21; color:#e8e8e8; font-size:13px'>{html.escape(text)}</pre>"
    )
    page.locator("pre").screenshot(path=PICTURES / f"{name}.png")


def shoot(page: Page, folder: Path, name: str) -> None:
    """Save a screenshot of one section of a page."""
    file, section = SHOTS[name]
    page.goto((folder / file).as_uri())
    page.wait_for_selector("html[data-ready=yes]", state="attached")
    if name == "retention":
        page.locator("#retention summary").first.click()
    page.locator(section).screenshot(path=PICTURES / f"{name}.png")


def open_page(browser: Browser, path: Path, width: int, height: int, scheme: str) -> Page:
    page = browser.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
    page.goto(path.as_uri())
    page.wait_for_selector("html[data-ready=yes]", state="attached")
    return page


def shoot_reports(browser: Browser, folder: Path) -> None:
    """Save the pictures of REPORTS, with few colors, and screenshots of the whole PAGES."""
    for name, (file, width, height) in REPORTS.items():
        page = open_page(browser, folder / file, width, height, "light")
        picture = Image.open(io.BytesIO(page.screenshot()))
        picture.quantize(128).save(PICTURES / f"{name}.png", optimize=True)
        page.close()
    WHOLE.mkdir(parents=True, exist_ok=True)
    for file, width, scheme in itertools.product(PAGES, WIDTHS, ("light", "dark")):
        page = open_page(browser, folder / file, width, 1000, scheme)
        path = WHOLE / f"{Path(file).stem}-{width}-{scheme}.png"
        page.screenshot(path=path, full_page=True)
        page.close()


def main(chromium: str) -> None:
    PICTURES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as name, sync_playwright() as playwright:
        folder = Path(name)
        printed = make(folder)
        for command in COMPARED:
            call(folder, command)
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport=WINDOW)
        for shot in SHOTS:
            shoot(page, folder, shot)
        for name, text in printed.items():
            write_down(page, text, name)
        shoot_reports(browser, folder)
        browser.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
