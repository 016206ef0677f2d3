"""The tour shows the pictures and commands of its script."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "guide" / "tour.md").read_text(encoding="utf-8")
SCRIPT = ROOT / "examples" / "tour" / "pictures.py"


def constant(name):
    """Return a constant of the script without an import, because the import needs a browser."""
    for node in ast.parse(SCRIPT.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == name:
            return ast.literal_eval(node.value)
    raise KeyError(name)


def test_tour_commands_match_the_picture_script():
    made = [f"python -m memrt {command}" for command in constant("COMMANDS")]
    shown = re.findall(r"^python -m memrt .*$", PAGE, re.MULTILINE)
    assert shown == made


def test_tour_pictures_match_the_picture_script():
    shown = re.findall(r"!\[[^\]]+\]\(\.\./pictures/(\w+)\.png\)", PAGE)
    assert sorted(shown) == sorted([*constant("SHOTS"), *constant("PRINTS"), "timeline"])
    for name in shown:
        content = (ROOT / "docs" / "pictures" / f"{name}.png").read_bytes()
        assert content.startswith(b"\x89PNG")
    kept = {path.stem for path in (ROOT / "docs" / "pictures").iterdir()}
    assert kept == {*shown, *constant("REPORTS")}


def test_pictures_of_reports_are_used_and_small():
    page = (ROOT / "docs" / "guide" / "reports.md").read_text(encoding="utf-8")
    shown = re.findall(r"!\[[^\]]+\]\(\.\./pictures/([\w-]+)\.png\)", page)
    assert sorted(shown) == sorted(constant("REPORTS"))
    for name in shown:
        assert (ROOT / "docs" / "pictures" / f"{name}.png").stat().st_size < 150_000
