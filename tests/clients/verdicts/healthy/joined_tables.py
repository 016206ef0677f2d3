"""Tables of pandas are joined, sorted and summed up in a function."""

import numpy as np
import pandas as pd


def main():
    rng = np.random.default_rng(0)
    orders = pd.DataFrame({"shop": rng.integers(0, 500, 80_000), "price": rng.random(80_000)})
    shops = pd.DataFrame({"shop": np.arange(500), "size": rng.random(500)})
    joined = orders.merge(shops, on="shop").sort_values("price")
    joined["share"] = joined["price"].rank(pct=True)
    table = joined.pivot_table(index="shop", values=["price", "share"], aggfunc="mean")
    print(table.describe())


main()
