"""Build the extension: include paths of memrt and NumPy, and no library to link."""

import memrt
import numpy
from setuptools import Extension, setup

setup(
    ext_modules=[
        Extension(
            "running_sum",
            ["running_sum.c"],
            include_dirs=[memrt.get_include(), numpy.get_include()],
            define_macros=[
                ("NPY_TARGET_VERSION", "NPY_1_22_API_VERSION"),
                ("NPY_NO_DEPRECATED_API", "NPY_1_22_API_VERSION"),
            ],
        )
    ]
)
