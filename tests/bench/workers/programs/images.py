"""Programs that use scikit-image, on pictures from the package."""

from __future__ import annotations

import numpy as np
from skimage import color, data, exposure, filters, measure, morphology, restoration, segmentation


def photo_pipeline() -> float:
    """Remove noise, raise contrast and find edges."""
    photo = data.astronaut() / 255.0
    smooth = restoration.denoise_tv_chambolle(photo, weight=0.1, channel_axis=-1, max_num_iter=20)
    bright = exposure.equalize_adapthist(smooth)
    lab = color.rgb2lab(bright)
    edges = filters.sobel(filters.gaussian(lab[..., 0], 2))
    return float(edges.sum())


def coin_counting() -> int:
    """Separate coins from the background and from each other, and measure the coins."""
    coins = data.coins()
    found = 0
    for sigma in (0.5, 1.0, 1.5, 2.0):
        smooth = filters.gaussian(coins, sigma)
        mask = morphology.closing(smooth > filters.threshold_otsu(smooth), np.ones((3, 3)))
        labels = measure.label(segmentation.clear_border(mask))
        regions = measure.regionprops_table(
            labels, coins, ["area", "centroid", "eccentricity", "intensity_mean"]
        )
        spread = segmentation.watershed(filters.sobel(smooth), labels)
        found += int((regions["area"] > 100).sum()) + int(spread.max())
    return found
