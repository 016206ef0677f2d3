"""Short programs of array kernels, in typical style: with temporaries."""

from __future__ import annotations

import numpy as np


def heat_equation() -> float:
    """Simulate a hot square in a cold plate with explicit steps."""
    plate = np.zeros((768, 768))
    plate[200:400, 200:400] = 100.0
    for _ in range(60):
        inner = plate[1:-1, 1:-1]
        change = plate[:-2, 1:-1] + plate[2:, 1:-1] + plate[1:-1, :-2] + plate[1:-1, 2:] - 4 * inner
        plate[1:-1, 1:-1] = inner + 0.2 * change
    return float(plate.sum())


def gaussian_process() -> float:
    """Fit a regression with a squared exponential kernel, searching for the length scale."""
    chance = np.random.default_rng(1)
    x = np.sort(chance.uniform(0, 10, 400))
    y = np.sin(x) + 0.1 * chance.standard_normal(x.size)
    best = -np.inf
    for scale in np.linspace(0.3, 3.0, 30):
        kernel = np.exp(-0.5 * ((x[:, None] - x[None, :]) / scale) ** 2)
        kernel = kernel + 0.01 * np.eye(x.size)
        lower = np.linalg.cholesky(kernel)
        weights = np.linalg.solve(kernel, y)
        best = max(best, -0.5 * y @ weights - np.log(np.diag(lower)).sum())
    return float(best)


def neural_network() -> float:
    """Train two layers on random digits by stochastic gradient descent with momentum."""
    chance = np.random.default_rng(2)
    images, wanted = chance.random((4096, 784)), chance.integers(0, 10, 4096)
    first, second = 0.05 * chance.standard_normal((784, 128)), 0.1 * chance.standard_normal(1280)
    second = second.reshape(128, 10)
    speeds = [np.zeros_like(first), np.zeros_like(second)]
    loss = 0.0
    for start in range(0, 4096 * 2, 128):
        rows = slice(start % 4096, start % 4096 + 128)
        batch, labels = images[rows], wanted[rows]
        hidden = np.maximum(batch @ first, 0)
        scores = hidden @ second
        likely = np.exp(scores - scores.max(axis=1, keepdims=True))
        likely = likely / likely.sum(axis=1, keepdims=True)
        loss -= np.log(likely[np.arange(128), labels]).mean()
        error = likely - np.eye(10)[labels]
        slopes = [batch.T @ ((error @ second.T) * (hidden > 0)), hidden.T @ error]
        speeds = [0.9 * speed - 0.001 * slope for speed, slope in zip(speeds, slopes, strict=True)]
        first, second = first + speeds[0], second + speeds[1]
    return float(loss)


def bodies() -> float:
    """Simulate stars that attract each other, over all pairs."""
    chance = np.random.default_rng(3)
    places, speeds = chance.standard_normal((400, 3)), np.zeros((400, 3))
    for _ in range(15):
        apart = places[None, :, :] - places[:, None, :]
        distance = np.sqrt((apart**2).sum(axis=2) + 0.01)
        speeds = speeds + 0.001 * (apart / distance[:, :, None] ** 3).sum(axis=1)
        places = places + 0.01 * speeds
    return float((speeds**2).sum())


def game_of_life() -> int:
    """Compute generations on a torus."""
    cells = (np.random.default_rng(4).random((512, 512)) < 0.3).astype(np.int8)
    for _ in range(300):
        near = sum(
            np.roll(cells, (down, right), (0, 1))
            for down in (-1, 0, 1)
            for right in (-1, 0, 1)
            if down or right
        )
        cells = ((near == 3) | ((cells == 1) & (near == 2))).astype(np.int8)
    return int(cells.sum())


def monte_carlo() -> float:
    """Compute the price of an option on the mean of a path."""
    chance = np.random.default_rng(5)
    total = 0.0
    for _ in range(12):
        steps = chance.standard_normal((4096, 128))
        paths = 100 * np.exp(np.cumsum(0.0001 + 0.015 * steps, axis=1))
        total += np.maximum(paths.mean(axis=1) - 100, 0).mean()
    return total


def k_means() -> float:
    """Cluster points with Lloyd's algorithm."""
    points = np.random.default_rng(6).standard_normal((20_000, 8))
    centres = points[:16]
    for _ in range(20):
        distances = ((points[:, None, :] - centres[None, :, :]) ** 2).sum(axis=2)
        nearest = distances.argmin(axis=1)
        centres = np.array([points[nearest == i].mean(axis=0) for i in range(16)])
    return float(distances.min(axis=1).sum())


def spectral_filter() -> float:
    """Keep the low frequencies of a long noise signal, window by window."""
    noise = np.random.default_rng(7).standard_normal(1 << 21)
    window = np.hanning(1 << 15)
    kept = np.zeros_like(noise)
    for start in range(0, noise.size - window.size, window.size // 2):
        part = slice(start, start + window.size)
        tones = np.fft.rfft(noise[part] * window)
        tones[1000:] = 0
        kept[part] += np.fft.irfft(tones, window.size)
    return float((kept**2).mean())
