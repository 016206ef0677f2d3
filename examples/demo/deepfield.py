"""Find the galaxies in the Hubble eXtreme Deep Field and measure them: an ordinary NumPy program.

Usage: python deepfield.py RESULT.npz

The program does not use memrt. Image: NASA/ESA, public domain, as shipped inside scikit-image.
"""

from __future__ import annotations

import sys

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from skimage import data

TILE = 40  # pixels along one side of a background tile
SEEING = 1.6  # standard deviation of a point source in pixels
THRESHOLD = 4.0  # standard deviations above the background that make a source
CUTOUT = 10  # pixels from the centre to the edge of a cutout
BRIGHTEST = 200  # sources that are stacked

SOURCE = np.dtype(
    [
        ("flux", "f8"),
        ("y", "f8"),
        ("x", "f8"),
        ("pixels", "i8"),
        ("colour", "f8"),
        ("axes", "f8", 2),
    ]
)


def linear_light(image):
    """Undo the sRGB transfer curve: (h, w, 3) uint8 -> (h, w, 3) float64 in 0..1."""
    table = np.arange(256) / 255.0
    table = np.where(table <= 0.04045, table / 12.92, ((table + 0.055) / 1.055) ** 2.4)
    return table[image]


def stretch(coarse, shape):
    """Interpolate a coarse grid bilinearly over the pixels of `shape`."""
    rows = np.linspace(0, coarse.shape[0] - 1, shape[0])
    columns = np.linspace(0, coarse.shape[1] - 1, shape[1])
    across = np.stack([np.interp(columns, np.arange(coarse.shape[1]), row) for row in coarse])
    down = [np.interp(rows, np.arange(coarse.shape[0]), column) for column in across.T]
    return np.stack(down, axis=1)


def background(sky):
    """Return medians of tiles, smoothed by a median of 3 x 3 tiles and stretched to the image."""
    height, width = (side // TILE * TILE for side in sky.shape)
    tiles = sky[:height, :width].reshape(height // TILE, TILE, width // TILE, TILE)
    medians = np.median(tiles, axis=(1, 3))
    windows = sliding_window_view(np.pad(medians, 1, mode="edge"), (3, 3))
    return stretch(np.median(windows, axis=(2, 3)), sky.shape)


def noise(sky):
    """Estimate the standard deviation of the sky by the median absolute deviation."""
    return 1.4826 * np.median(np.abs(sky - np.median(sky)))


def matched_filter(sky):
    """Correlate with the shape of a point source, in Fourier space."""
    fy = np.fft.fftfreq(sky.shape[0])[:, None]
    fx = np.fft.rfftfreq(sky.shape[1])[None, :]
    response = np.exp(-2.0 * (np.pi * SEEING) ** 2 * (fy**2 + fx**2))
    return np.fft.irfft2(np.fft.rfft2(sky) * response, s=sky.shape)


def label(mask):
    """Number the 4-connected islands of a mask from 1; 0 is the sea."""
    labels = np.where(mask, np.arange(1, mask.size + 1).reshape(mask.shape), 0)
    while True:
        before = labels.copy()
        for axis in (0, 1):
            rows = np.moveaxis(labels, axis, 0)
            for upper, lower in ((rows[:-1], rows[1:]), (rows[1:], rows[:-1])):
                both = (upper > 0) & (lower > 0)
                np.copyto(upper, np.maximum(upper, lower), where=both)
        root = np.concatenate([[0], labels.ravel()])
        labels = root[root[labels]]
        if np.array_equal(labels, before):
            return np.unique(labels, return_inverse=True)[1].reshape(mask.shape)


def measure(labels, sky, colours):
    """Return a catalogue of the islands, brightest first."""
    inside = np.flatnonzero(labels)
    which, weight = labels.ravel()[inside], sky.ravel()[inside]
    y, x = (index.astype(float) for index in np.unravel_index(inside, labels.shape))
    flux = np.bincount(which, weight)[1:]
    catalogue = np.empty(flux.size, SOURCE)
    catalogue["flux"], catalogue["pixels"] = flux, np.bincount(which)[1:]
    catalogue["y"] = np.bincount(which, weight * y)[1:] / flux
    catalogue["x"] = np.bincount(which, weight * x)[1:] / flux
    red, blue = (np.bincount(which, colours[..., band].ravel()[inside])[1:] for band in (0, 2))
    catalogue["colour"] = np.log10((red + 1e-6) / (blue + 1e-6))
    dy, dx = y - catalogue["y"][which - 1], x - catalogue["x"][which - 1]
    moments = np.empty((flux.size, 2, 2))
    for row, column, product in ((0, 0, dy * dy), (0, 1, dy * dx), (1, 1, dx * dx)):
        moments[:, row, column] = np.bincount(which, weight * product)[1:] / flux
    moments[:, 1, 0] = moments[:, 0, 1]
    catalogue["axes"] = np.sqrt(np.maximum(np.linalg.eigvalsh(moments), 0.0))
    return np.sort(catalogue, order="flux")[::-1]


def stack(sky, catalogue):
    """Return the median image of the brightest sources, without pixels outside the image."""
    padded = np.pad(sky, CUTOUT, constant_values=np.nan)
    windows = sliding_window_view(padded, (2 * CUTOUT + 1, 2 * CUTOUT + 1))
    best = catalogue[:BRIGHTEST]
    cutouts = windows[best["y"].round().astype(int), best["x"].round().astype(int)]
    return np.nanmedian(cutouts / best["flux"][:, None, None], axis=0)


def reduce(image):
    """Return all arrays from the pixels to the catalogue, keyed by the name of the stage."""
    colours = linear_light(image)
    sky = colours @ np.array([0.2126, 0.7152, 0.0722])
    flat = sky - background(sky)
    filtered = matched_filter(flat)
    labels = label(filtered > THRESHOLD * noise(filtered))
    catalogue = measure(labels, np.maximum(flat, 1e-9), colours)
    return {
        "colours": colours,
        "flat": flat,
        "filtered": filtered,
        "labels": labels,
        "catalogue": catalogue,
        "source": stack(flat, catalogue),
    }


def main(result):
    stages = reduce(data.hubble_deep_field())
    np.savez(result, **stages)
    catalogue = stages["catalogue"]
    print(f"{catalogue.size} sources, the brightest at y={catalogue['y'][0]:.1f} ", end="")
    print(f"x={catalogue['x'][0]:.1f}, median colour {np.median(catalogue['colour']):+.3f}")


if __name__ == "__main__":
    main(sys.argv[1])
