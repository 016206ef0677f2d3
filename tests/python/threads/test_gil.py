"""The compiled modules work without the GIL, so CPython leaves the GIL off at their import."""

import pytest
from gil import CAN_LACK_GIL

IMPORTS = {
    "memrt": "",
    "runtime of Numba": """
from importlib.machinery import ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_file_location
file = memrt._memrt.__file__
spec = spec_from_file_location("_nrt_python", file, loader=ExtensionFileLoader("_nrt_python", file))
spec.loader.exec_module(module_from_spec(spec))
""",
}


@pytest.mark.skipif(not CAN_LACK_GIL, reason="this build of Python has a GIL")
@pytest.mark.parametrize("name", IMPORTS)
def test_import_leaves_the_gil_off(name, run_python):
    code = f"import sys, memrt\n{IMPORTS[name]}\nprint(sys._is_gil_enabled())"
    result = run_python(code, flags=("-W", "error"), env={"PYTHON_GIL": ""})
    assert result.stdout == "False\n"
