"""Load memrt's printers and commands into gdb.

The file is installed beside the library as libmemrt.so.N-gdb.py. gdb loads the file automatically
if its safe path allows, and `source` loads the file from anywhere. The modules are in the folder
beside this file that has the name of this file without `.py`. The modules need debug information
of libmemrt, and gdb 10 or newer.
"""

import importlib.util
import os
import sys

import gdb


def load_memrt():
    """Import the modules anew, because modules of another libmemrt may be loaded."""
    script = os.path.realpath(load_memrt.__code__.co_filename)
    folder = os.path.splitext(script)[0]
    for name in [name for name in sys.modules if name.split(".")[0] == "memrt_gdb"]:
        del sys.modules[name]
    spec = importlib.util.spec_from_file_location("memrt_gdb", os.path.join(folder, "__init__.py"))
    package = importlib.util.module_from_spec(spec)
    sys.modules["memrt_gdb"] = package
    spec.loader.exec_module(package)
    package.install(gdb.current_objfile())


load_memrt()
