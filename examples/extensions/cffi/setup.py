"""Build the extension from the declarations in build_native.py."""

from setuptools import setup

setup(cffi_modules=["build_native.py:ffi"])
