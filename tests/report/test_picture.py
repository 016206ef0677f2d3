"""The timeline as a picture, and the command that reopens recordings."""

import copy
import subprocess
import sys

import pytest
from hostile import HOSTILE
from matplotlib import image
from matplotlib.figure import Figure
from memrt._profile.picture import draw


def report(*arguments, **options):
    command = [sys.executable, "-m", "memrt", "report", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)


def drawn(document, path):
    with path.open("wb") as file:
        draw(document, file)
    return image.imread(path)


def test_picture_has_coloured_areas(document, tmp_path):
    pixels = drawn(document, tmp_path / "p.png")
    assert pixels.shape[0] > 400
    assert pixels.shape[1] > 800
    flat = (pixels[:, :, :3] * 255).round().astype(int).reshape(-1, 3)
    colours = {tuple(each) for each in flat[::7]}
    blue, orange = (31, 119, 180), (255, 127, 14)  # the first two areas
    assert {orange} <= colours or {blue} <= colours


def test_empty_timeline_with_hostile_names_is_drawn(document, tmp_path):
    empty = copy.deepcopy(document)
    empty["program"] = ["$x^", HOSTILE, "\udcff"]
    empty["timeline"] = {
        **{name: [] for name in ("t", "live", "cached", "resident", "scopes", "scoped")},
        "halvings": 0,
    }
    assert drawn(empty, tmp_path / "p.png").size > 0


def test_scope_absent_from_a_sample_has_0_bytes(document, tmp_path):
    line = {"t": [0, 1], "live": [8, 16], "cached": [0, 0], "resident": [16, 16], "scopes": ["a"]}
    pictures = [
        drawn({**document, "timeline": {**line, "scoped": [first, [[0, 8]]]}}, tmp_path / "p.png")
        for first in ([], [[0, 0]])
    ]
    assert (pictures[0] == pictures[1]).all()


def test_size_axis_of_a_picture_begins_at_0(document, tmp_path, monkeypatch):
    figures = []
    save = Figure.savefig

    def savefig(figure, *arguments, **options):
        figures.append(figure)
        save(figure, *arguments, **options)

    monkeypatch.setattr(Figure, "savefig", savefig)
    line = {name: [0, 40] for name in ("live", "cached", "resident")}
    timeline = {**line, "t": [0, 1], "scopes": [], "scoped": [[], []]}
    drawn({**document, "timeline": timeline}, tmp_path / "p.png")
    labels = [label.get_text() for label in figures[0].axes[0].get_yticklabels()]
    assert labels == ["0 B", "8 B", "16 B", "24 B", "32 B", "40 B", "48 B"]


def test_report_recreates_the_page_of_run(recorded, tmp_path):
    result = report(recorded, "-o", tmp_path / "again.html", "--plot", tmp_path / "p.png")
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.splitlines() == [
        f"memrt: page in {tmp_path / 'again.html'}",
        f"memrt: picture in {tmp_path / 'p.png'}",
    ]
    again = (tmp_path / "again.html").read_bytes()
    assert again == recorded.with_name("run.html").read_bytes()
    assert (tmp_path / "p.png").read_bytes()[:4] == b"\x89PNG"


def test_default_page_path_is_beside_the_recording(recorded, tmp_path):
    (tmp_path / "run.memrt").write_bytes(recorded.read_bytes())
    assert report("run.memrt", cwd=tmp_path).returncode == 0
    assert (tmp_path / "run.html").read_bytes().startswith(b"<!DOCTYPE html>")
    refused = report("run.memrt", cwd=tmp_path)
    assert refused.returncode == 2
    assert "add --force" in refused.stderr
    assert report("run.memrt", "--force", cwd=tmp_path).returncode == 0


@pytest.mark.parametrize("ending", ["raise SystemExit(3)", "1 / 0"])
def test_failing_program_has_a_page_and_a_picture(tmp_path, ending):
    (tmp_path / "program.py").write_text(f"import numpy as np\nkept = np.ones(10_000)\n{ending}\n")
    command = [sys.executable, "-m", "memrt", "run", "--html", "p.html", "--plot", "p.png"]
    result = subprocess.run(
        [*command, "program.py"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert result.returncode == (3 if "3" in ending else 1)
    assert result.stderr.endswith("memrt: page in p.html\nmemrt: picture in p.png\n")
    assert "program.py:2" in (tmp_path / "p.html").read_text()
