"""Programs that use pandas."""

from __future__ import annotations

import numpy as np
import pandas as pd


def sales(rows: int) -> pd.DataFrame:
    chance = np.random.default_rng(9)
    return pd.DataFrame(
        {
            "shop": chance.integers(0, 200, rows),
            "day": chance.integers(0, 365, rows),
            "price": chance.random(rows) * 100,
            "count": chance.integers(1, 10, rows),
        }
    )


def group_by() -> float:
    """Compute turnover by shop and day, and the sales of the best shops."""
    frame = sales(600_000)
    frame["turnover"] = frame["price"] * frame["count"]
    by_day = frame.groupby(["shop", "day"])["turnover"].agg(["sum", "mean", "max"])
    best = by_day["sum"].groupby("shop").sum().nlargest(20).index
    joined = frame[frame["shop"].isin(best)].merge(by_day.reset_index(), on=["shop", "day"])
    return float((joined["turnover"] / joined["sum"]).sum())


def rolling_statistics() -> float:
    """Compute moving means and deviations of random walks."""
    walks = np.random.default_rng(10).standard_normal((40_000, 12)).cumsum(axis=0)
    frame = pd.DataFrame(walks, index=pd.date_range("2020-01-01", periods=40_000, freq="min"))
    moving = frame.rolling(120)
    bands = (frame - moving.mean()) / moving.std()
    hourly = bands.resample("1h").agg(["mean", "min", "max"])
    return float(hourly.fillna(0).to_numpy().sum() + frame.ewm(span=60).mean().to_numpy().sum())
