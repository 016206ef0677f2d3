"""A program computes one result from two arrays."""

import numpy as np


def main():
    rng = np.random.default_rng(0)
    left, right = rng.random((500, 500)), rng.random((500, 500))
    product = left @ right
    print(product.trace())


main()
