"""Memory in notebooks: statistics as a table, and the memory of a cell."""

import subprocess
import sys

import memrt

CELLS = """\
from IPython.core.interactiveshell import InteractiveShell
from IPython.core.displaypub import CapturingDisplayPublisher
shell = InteractiveShell.instance(colors="nocolor")
shell.display_pub = CapturingDisplayPublisher()
shell.run_cell("%load_ext memrt")
shell.run_cell("import numpy as np, memrt")
assert shell.run_cell({cell!r}).success
for output in shell.display_pub.outputs:
    print(output["data"]["text/html"])
    print(output["data"]["text/plain"])
print("kept on memrt:", memrt.handler_name(shell.user_ns.get("kept", np.ones(1))))
print("after:", memrt.handler_name())
"""


def run_cell(cell):
    code = "import memrt, numpy as np\n" + CELLS.format(cell=cell)
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


def test_cell_magic_refuses_arguments():
    code = "from IPython.core.interactiveshell import InteractiveShell as S\n"
    code += "s = S.instance(colors='nocolor'); s.run_cell('%load_ext memrt')\n"
    code += "r = s.run_cell('%%memrt 5\\nprint(12345)')\nprint(r.error_in_exec)"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "takes no arguments, got '5'" in result.stdout + result.stderr
    assert "12345\n" not in result.stdout


def test_statistics_table_has_all_fields():
    stats = memrt.stats()
    table = stats._repr_html_()
    for name, number in stats.to_dict().items():
        assert f">{name}</th>" in table
        assert f"{number:,}" in table
