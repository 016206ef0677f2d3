"""MEMRT_* variables as Python sees them."""

import memrt
import pytest


def test_options_are_rows_of_name_value_and_help():
    options = memrt.options()
    assert {"MEMRT_CHECK", "MEMRT_TRACK", "MEMRT_ALIGNMENT"} <= {o.name for o in options}
    for option in options:
        assert option.value
        assert "default" in option.help


@pytest.mark.parametrize(
    ("variable", "value"),
    [("MEMRT_CHEKC", "1"), ("MEMRT_CHECK", "maybe"), ("MEMRT_ALIGNMENT", "3")],
)
def test_an_unknown_option_or_value_warns_once_by_name(run_python, variable, value):
    result = run_python(
        "import warnings, sys\n"
        "with warnings.catch_warnings(record=True) as seen:\n"
        "    warnings.simplefilter('always')\n"
        "    import memrt\n"
        "    for name in [n for n in sys.modules if n.startswith('memrt')]: del sys.modules[name]\n"
        "    import memrt\n"
        "print(*[f'{w.category.__name__}: {w.message}' for w in seen], sep='\\n')\n",
        env={variable: value},
    )
    lines = result.stdout.splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("RuntimeWarning")
    assert variable in lines[0]


def test_good_options_do_not_warn(run_python):
    result = run_python(
        "import memrt, numpy as np\n"
        "print(memrt.Policy(alignment=None).alignment, memrt.zeros(3).ctypes.data % 256)\n",
        env={"MEMRT_ALIGNMENT": "256", "MEMRT_TRACK": "1"},
        flags=("-W", "error"),
    )
    assert result.stdout == "256 0\n"


def test_tracking_can_be_on_from_the_start(run_python):
    result = run_python(
        "import memrt; mi = memrt.alloc(777); print([b.size for b in memrt.live()])\n",
        env={"MEMRT_TRACK": "1"},
    )
    assert result.stdout == "[777]\n"


def test_the_checking_mode_says_so_and_changes_no_result(run_python):
    run_python(
        "import memrt, numpy as np\n"
        "from memrt import _memrt\n"
        "assert _memrt.features()['checking']\n"
        "with memrt.Policy():\n"
        "    a = np.arange(1000.0); a.resize(5000, refcheck=False)\n"
        "b = memrt.zeros(10); mi = memrt.meminfo(a); c = memrt.adopt(np.ones(5))\n"
        "assert memrt.as_array(mi, dtype='f8')[999] == 999\n"
        "del a, b, c, mi\n"
        "assert memrt.stats().live == 0\n",
        env={"MEMRT_CHECK": "1"},
    )


def test_the_checking_mode_names_a_block_that_was_written_past_its_end(run_python):
    result = run_python(
        "import ctypes, memrt\n"
        "mi = memrt.alloc(100, name='victim')\n"
        "ctypes.memset(mi.data + 100, 0, 8)\n"
        "del mi\n",
        env={"MEMRT_CHECK": "1"},
        check=False,
    )
    assert result.returncode < 0
    for part in ('"victim"', "100 bytes", "past its end"):
        assert part in result.stderr
