"""Build the extension: Cython finds memrt's declarations beside the package."""

import memrt
from Cython.Build import cythonize
from setuptools import Extension, setup

setup(
    ext_modules=cythonize(
        [
            Extension(
                "secret_data_cython",
                ["secret_data_cython.pyx"],
                include_dirs=[memrt.get_include()],
            )
        ]
    )
)
