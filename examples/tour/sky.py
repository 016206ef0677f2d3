"""Stack exposures of a patch of sky, so that faint stars come out of the noise.

Usage: python examples/tour/sky.py [EXPOSURES [copy]]

The program has an intended fault for docs/guide/tour.md: each preview is a view that keeps the
whole exposure alive. With the argument copy, each preview is a copy.
"""

from __future__ import annotations

import sys

import memrt
import numpy as np

SIDE = 600  # pixels
STARS = 200
NOISE = 40.0
PREVIEW = 32

previews: list[np.ndarray] = []


def sky(random: np.random.Generator) -> np.ndarray:
    """Return the true image: stars of all magnitudes, slightly out of focus."""
    image = np.zeros((SIDE, SIDE))
    rows, columns = random.integers(2, SIDE - 2, (2, STARS))
    image[rows, columns] = random.pareto(1.5, STARS) * 100
    for axis in (0, 1):
        image = (np.roll(image, 1, axis) + 2 * image + np.roll(image, -1, axis)) / 4
    return image


def expose(truth: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Return one exposure: the true image shifted by a few pixels, with noise."""
    shift = tuple(random.integers(-8, 9, 2))
    return np.roll(truth, shift, (0, 1)) + random.normal(0, NOISE, truth.shape)


def offset(exposure: np.ndarray, reference: np.ndarray) -> tuple[int, int]:
    """Return the shift of an exposure, from the peak of its correlation with a reference."""
    spectrum = np.fft.rfft2(exposure).conj() * np.fft.rfft2(reference)
    correlation = np.fft.irfft2(spectrum, exposure.shape)
    row, column = np.unravel_index(correlation.argmax(), correlation.shape)
    return int(row), int(column)


def keep_preview(exposure: np.ndarray, copy: bool) -> None:
    """Keep a corner of an exposure as a preview. Without `copy`, the whole exposure stays alive."""
    corner = exposure[:PREVIEW, :PREVIEW]
    previews.append(corner.copy() if copy else corner)


def main(exposures: int, copy: bool) -> None:
    random = np.random.default_rng(1)
    with memrt.scope("expose"):
        truth = sky(random)
        taken = [expose(truth, random) for _ in range(exposures)]
    with memrt.scope("align"):
        aligned = [np.roll(each, offset(each, taken[0]), (0, 1)) for each in taken]
    for each in taken:
        keep_preview(each, copy)
    del taken
    with memrt.scope("stack"):
        stacked = np.median(aligned, axis=0)
    del aligned
    reference = stacked - np.median(stacked)
    print(f"noise of an exposure {NOISE:.1f}, of all {np.median(np.abs(reference)) / 0.6745:.1f}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 12, sys.argv[2:] == ["copy"])
