"""MEMRT_* variables as Python sees them."""

import memrt
import numpy as np
import pytest

# Options that enable caching, whatever the environment sets.
KEEPING = {
    "MEMRT_CACHE": "1",
    "MEMRT_CHECK": "0",
    "MEMRT_CACHE_LIMIT": "none",
    "MEMRT_DECAY": "never",
}


def test_options_have_name_value_and_help():
    options = memrt.debug.options()
    assert {"MEMRT_CHECK", "MEMRT_TRACK", "MEMRT_ALIGNMENT"} <= {o.name for o in options}
    for option in options:
        assert option.value
        assert "default" in option.help


@pytest.mark.parametrize(
    ("variable", "value"),
    [("MEMRT_CHEKC", "1"), ("MEMRT_CHECK", "maybe"), ("MEMRT_ALIGNMENT", "3")],
)
def test_unknown_variable_or_value_warns_once_with_its_name(run_python, variable, value):
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


def test_valid_options_do_not_warn(run_python):
    result = run_python(
        "import memrt, numpy as np\n"
        "print(memrt.Policy(alignment=None).alignment, memrt.zeros(3).ctypes.data % 256)\n",
        env={"MEMRT_ALIGNMENT": "256", "MEMRT_TRACK": "1"},
        flags=("-W", "error"),
    )
    assert result.stdout == "256 0\n"


def test_memrt_track_enables_tracking_at_start(run_python):
    result = run_python(
        "import memrt; mi = memrt.alloc(777); print([b.nbytes for b in memrt.debug.live()])\n",
        env={"MEMRT_TRACK": "1"},
    )
    assert result.stdout == "[777]\n"


def test_checking_mode_is_reported_and_keeps_results(run_python):
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


def test_checking_mode_names_block_with_overwritten_redzone(run_python):
    result = run_python(
        "import ctypes, memrt\n"
        "mi = memrt.alloc(100, name='victim')\n"
        "ctypes.memset(mi.address + 100, 0, 8)\n"
        "del mi\n",
        env={"MEMRT_CHECK": "1"},
        check=False,
    )
    assert result.returncode < 0
    for part in ('"victim"', "100 bytes", "past the end of the block"):
        assert part in result.stderr


@pytest.fixture
def limits():
    """Yield the values of the options that can be set, and restore the values after the test."""
    before = {option.name: option.value for option in memrt.debug.options()}
    names = ("MEMRT_CACHE_LIMIT", "MEMRT_DECAY", "MEMRT_HUGEPAGES", "MEMRT_PEAK")
    yield {name: before[name] for name in names}
    for name in names:
        memrt.set_option(name, before[name])


def in_force(name):
    return next(option.value for option in memrt.debug.options() if option.name == name)


@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [
        ("cache_limit", "64M", "67108864"),
        ("MEMRT_CACHE_LIMIT", 0, "0"),
        ("cache_limit", np.int64(5), "5"),
        ("cache_limit", "none", "none"),
        ("decay", 100, "100"),
        ("MEMRT_DECAY", "never", "never"),
        ("hugepages", "off", "off"),
        ("HugePages", "ADVISE", "advise"),
        ("MEMRT_HUGEPAGES", "large", "large"),
        ("peak", "exact", "exact"),
        ("MEMRT_PEAK", "Bounded", "bounded"),
    ],
)
def test_set_option_changes_the_option_value(limits, name, value, shown):
    memrt.set_option(name, value)
    assert in_force("MEMRT_" + name.upper().removeprefix("MEMRT_")) == shown


NONSENSE = [
    ("cache_limit", "1.5G", "a number of bytes like 268435456 or 256M, or none"),
    ("cache_limit", -1, "a number of bytes like 268435456 or 256M, or none"),
    ("cache_limit", 2**64, "a number of bytes like 268435456 or 256M, or none"),
    ("cache_limit", "", "a number of bytes like 268435456 or 256M, or none"),
    ("decay", "soon", "milliseconds from 0 to 86400000, or never"),
    ("decay", -1, "milliseconds from 0 to 86400000, or never"),
    ("decay", 86_400_001, "milliseconds from 0 to 86400000, or never"),
    ("decay", True, "milliseconds from 0 to 86400000, or never"),
    ("hugepages", "always", "off, advise or large"),
    ("hugepages", 1, "off, advise or large"),
    ("hugepages", "\u00e4" * 200, "off, advise or large"),
]


@pytest.mark.parametrize(("name", "value", "allowed"), NONSENSE)
@pytest.mark.parametrize(
    "setting",
    [memrt.set_option, lambda name, value: memrt.Policy(**{name: value})],
    ids=["set_option", "Policy"],
)
def test_bad_option_value_is_refused_with_allowed_values(limits, setting, name, value, allowed):
    with pytest.raises(ValueError, match=f"^{name} must be {allowed}, got '") as caught:
        setting(name, value)
    assert f", got '{value}"[:30] in str(caught.value)
    assert {name: in_force(name) for name in limits} == limits


@pytest.mark.parametrize("value", [1.5, None, b"off", [1]])
def test_option_value_of_wrong_type_raises_type_error(limits, value):
    with pytest.raises(TypeError, match="decay must be a text or a whole number, got"):
        memrt.set_option("decay", value)
    if value is not None:
        with pytest.raises(TypeError, match="decay must be a text or a whole number, got"):
            memrt.Policy(decay=value)


def test_start_only_option_is_refused_in_a_running_process():
    for name in ("MEMRT_CHECK", "alignment", "track", "MEMRT_CACHE"):
        with pytest.raises(ValueError, match="cannot change in a running process: set MEMRT_"):
            memrt.set_option(name, 1)


def test_unknown_option_is_refused_by_name():
    with pytest.raises(ValueError, match="MEMRT_DEKAY is not an option of memrt"):
        memrt.set_option("MEMRT_DEKAY", 1)
    with pytest.raises(ValueError, match="null"):
        memrt.set_option("decay\0", 1)


def test_lower_cache_limit_frees_cached_memory_at_once(run_python):
    result = run_python(
        "import memrt, numpy as np\n"
        "with memrt.Policy():\n"
        "    arrays = [np.ones(1 << 20) for _ in range(4)]\n"
        "    del arrays\n"
        "def large(): return memrt.stats().cached >> 20\n"
        "before = large()\n"
        "memrt.set_option('cache_limit', '20M'); some = large()\n"
        "memrt.set_option('cache_limit', 0); none = large()\n"
        "print(before >= 32, some < 22, none < 4)\n",
        env=KEEPING,
    )
    assert result.stdout == "True True True\n"


def test_decay_thread_sleeps_until_the_decay_time(run_python):
    result = run_python(
        "import memrt, numpy as np, os, time\n"
        "def threads(): return len(os.listdir('/proc/self/task'))\n"
        "others = threads()\n"
        "with memrt.Policy():\n"
        "    np.ones(1 << 20)\n"
        "used = time.process_time(); time.sleep(0.3)\n"
        "print(threads() - others, time.process_time() - used < 0.1)\n",
        env={**KEEPING, "MEMRT_DECAY": "3600000"},
    )
    assert result.stdout == "1 True\n"
