"""Build the extension: Cython finds memrt's declarations beside the package."""

import memrt
import numpy
from Cython.Build import cythonize
from setuptools import Extension, setup

setup(
    ext_modules=cythonize(
        [
            Extension(
                "running_min",
                ["running_min.pyx"],
                include_dirs=[memrt.get_include(), numpy.get_include()],
                define_macros=[
                    ("NPY_TARGET_VERSION", "NPY_1_22_API_VERSION"),
                    ("NPY_NO_DEPRECATED_API", "NPY_1_22_API_VERSION"),
                ],
            )
        ]
    )
)
