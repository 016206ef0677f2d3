"""A formula needs several temporary arrays at once. Expected: temporaries."""

import numpy as np


def energy(mass, speed):
    return mass * speed * speed / 2 + np.sqrt(mass * mass + speed * speed)  # planted


def main():
    rng = np.random.default_rng(3)
    mass, speed = rng.random(2_000_000), rng.random(2_000_000)
    for _ in range(20):
        result = energy(mass, speed)
    print(result.sum())


main()
