"""Memory in notebooks: statistics as a table, and the memory of a cell."""

import re
import subprocess
import sys

import memrt
import pytest
from test_accessibility import violations

CELLS = """\
from IPython.core.interactiveshell import InteractiveShell
from IPython.core.displaypub import CapturingDisplayPublisher
shell = InteractiveShell.instance(colors="nocolor")
shell.display_pub = CapturingDisplayPublisher()
shell.run_cell("%load_ext memrt")
shell.run_cell("import numpy as np, memrt")
for cell in {cells!r}:
    assert shell.run_cell(cell, store_history=True).success
for output in shell.display_pub.outputs:
    print(output["data"]["text/html"])
    print(output["data"]["text/plain"])
print("kept on memrt:", memrt.handler_name(shell.user_ns.get("kept", np.ones(1))))
print("after:", memrt.handler_name())
"""


def run_cell(*cells):
    code = "import memrt, numpy as np\n" + CELLS.format(cells=cells)
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=120
    )
    return result.stdout + result.stderr


def test_cell_runs_on_memrt_and_shows_its_memory():
    said = run_cell("%%memrt\nkept = np.ones(100_000)\nhigh = np.ones(1_000_000)\ndel high\n")
    for part in ("<caption>memrt: this cell</caption>", "peak</th>", "8.4 MiB", "781.2 KiB in 1"):
        assert part in said
    assert "kept on memrt: memrt" in said
    assert "after: None" in said or "after: default_allocator" in said


def test_failing_cell_shows_its_error_and_memory():
    said = run_cell("%%memrt\nkept = np.ones(100_000)\n1 / 0\n")
    assert "ZeroDivisionError" in said
    assert "781.2 KiB in 1" in said


def test_file_names_are_escaped_in_the_table():
    said = run_cell(
        "%%memrt\nexec(compile('kept = np.ones(9999)', '<img src=x>', 'exec'), globals())\n"
    )
    assert "&lt;img src=x&gt;" in said


REFUSED = [
    ("%%memrt 5\\nprint(12345)", "'5'"),
    ("%memrt --of", "'--of'"),
    ("%memrt --on x", "'--on x'"),
]


@pytest.mark.parametrize(("cell", "got"), REFUSED)
def test_magics_refuse_unknown_arguments(cell, got):
    code = "from IPython.core.interactiveshell import InteractiveShell as S\n"
    code += "s = S.instance(colors='nocolor'); s.run_cell('%load_ext memrt')\n"
    code += f"r = s.run_cell('{cell}')\nprint(r.error_in_exec)"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert f"are the forms of the magic, got {got}" in result.stdout + result.stderr
    assert "12345\n" not in result.stdout


def test_lines_of_cells_are_named_like_in_tracebacks():
    said = run_cell(
        "def make(size):\n    return np.ones(size)\n",
        "%%memrt\nkept = make(50_000)\nmore = np.ones(30_000)\n",
    )
    assert "390.6 KiB in 1 buffer  make in In[1], line 2" in said
    assert "234.4 KiB in 1 buffer  In[2], line 3" in said


def test_line_magic_measures_a_statement():
    said = run_cell("size = 2", "%memrt kept = {1: np.ones(100_000 * size), '$size': 1}")
    assert "<caption>memrt: this cell</caption>" in said
    assert "1.5 MiB in 1 buffer  In[2], line 1" in said


def test_line_magic_shows_the_session_by_line_while_on():
    said = run_cell(
        "%memrt", "%memrt --on", "%memrt --on", "kept = np.ones(100_000)", "%memrt", "%memrt --off",
        "%memrt --off", "%memrt",
    )  # fmt: skip
    first, second, third = said.split("<caption>memrt: this session</caption>")[1:]
    assert "unknown: %memrt --on tracks from then on" in first
    assert "live  781.2 KiB" in second
    assert "781.2 KiB in 1 buffer  In[4], line 1" in second
    assert "live  781.2 KiB" in third
    assert "unknown: %memrt --on tracks from then on" in third
    assert "kept on memrt: memrt" in said
    assert "after: None" in said or "after: default_allocator" in said


def test_report_option_shows_the_page_in_a_frame():
    said = run_cell("%%memrt --report\nkept = np.ones(100_000)\n")
    assert "781.2 KiB in 1" in said
    blocks = re.search(r"blocks allocated  (\d+)", said)
    assert int(blocks[1]) < 50, "the blocks of the recorder count for the cell"
    table, _, frame = said.partition("<iframe ")
    assert 'srcdoc="&lt;!DOCTYPE html&gt;' in frame
    assert "In[1], line 2" in table
    assert "In[1], line 2" in frame
    assert "# %%memrt --report" in frame, "the excerpt lacks the first line of the cell"
    assert said.count("<script") == said.count("<iframe ") - 1 == 0
    assert "memrt: report of In[1], shown in notebooks" in said
    assert "after: None" in said or "after: default_allocator" in said


NOTEBOOK = """\
<!DOCTYPE html><html lang="en" data-ready="yes"><head><title>Notebook</title></head><body>
<main><h1>Notebook</h1>{}</main></body></html>
"""


def test_frame_of_the_page_works_in_a_browser(tmp_path, visit):
    said = run_cell("%%memrt --report\nkept = np.ones(500_000)\n")
    path = tmp_path / "notebook.html"
    path.write_text(NOTEBOOK.format(re.search(r"<iframe .*?</iframe>", said, re.DOTALL)[0]))
    page = visit(path)
    frame = page.locator("iframe[title='memrt: report of In[1]']").element_handle().content_frame()
    frame.wait_for_selector("html[data-ready=yes]", state="attached")
    shown = frame.locator("#findings, #highest, #live, #leaks, #holders")
    lines = set(re.findall(r"In\[1\], line \d+", " ".join(shown.all_inner_texts())))
    assert lines == {"In[1], line 2"}
    assert violations(page) == []
    assert violations(frame) == []


def test_indented_cell_has_the_line_numbers_of_tracebacks():
    said = run_cell("%%memrt\n\n    kept = np.ones(50_000)\n    1 / 0\n")
    assert "390.6 KiB in 1 buffer  In[1], line 3" in said
    assert re.search(r"Cell In\[\d\], line 4", said)


def test_cell_of_a_nested_magic_runs():
    said = run_cell("%%memrt\n\n%%capture printed\nkept = np.ones(50_000)\nprint('secret')\n")
    assert "left behind  390.6 KiB" in said
    assert "secret" not in said


def test_report_option_names_a_missing_package():
    hidden = "import importlib.util; importlib.util.find_spec = lambda name: None\n"
    code = "import memrt, numpy as np\n" + hidden + CELLS.format(cells=("%%memrt --report\n12345",))
    code = code.replace("assert shell.run_cell(cell, store_history=True).success", "run(cell)")
    code = code.replace("shell.display_pub", "run = shell.run_cell\nshell.display_pub", 1)
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "a page needs the missing package jinja2" in result.stdout + result.stderr
    assert "after: None" in result.stdout or "after: default_allocator" in result.stdout


def test_policies_and_scopes_are_tables():
    policy = memrt.Policy(4096, "a<b", decay=0, limit="1 GiB")
    with policy, memrt.scope("notebook<") as scope, memrt.scope("in", limit="2 GiB") as inner:
        kept = memrt.zeros(1000)
    for each, name, rows in [
        (policy, "memrt.Policy &#x27;a&lt;b&#x27;", [("alignment", "4096"), ("limit", "1.0 GiB")]),
        (scope, "memrt.types.Scope &#x27;notebook&lt;&#x27;", [("live", "7.8 KiB")]),
        (inner, "memrt.types.Scope &#x27;notebook&lt; / in&#x27;", [("limit", "2.0 GiB")]),
    ]:
        table = each._repr_html_()
        assert f"<caption>{name}</caption>" in table
        for row, value in [*rows, ("live", "7.8 KiB"), ("blocks", "1")]:
            assert f'>{row}</th><td style="text-align:right">{value}</td>' in table
    tree = memrt.scopes()._repr_html_()
    assert "<th>scope</th><th>live</th><th>peak</th>" in tree
    assert ">notebook&lt;/in</th>" in tree
    del kept


def test_rich_shows_figures_of_policies_and_scopes():
    from rich.pretty import pretty_repr

    policy = memrt.Policy(name="rich one")
    with policy, memrt.scope("rich") as scope:
        kept = memrt.zeros(1000)
    assert pretty_repr(policy, max_width=200) == (
        "Policy('rich one', alignment=64, live='7.8 KiB', peak='7.8 KiB', total='7.8 KiB', "
        "blocks='1')"
    )
    assert pretty_repr(scope, max_width=200).startswith("Scope('rich', live='7.8 KiB'")
    del kept


def test_statistics_table_has_all_fields():
    stats = memrt.stats()
    table = stats._repr_html_()
    for name, number in stats.to_dict().items():
        assert f">{name}</th>" in table
        assert f"{number:,}" in table
