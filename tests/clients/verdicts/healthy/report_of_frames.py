"""Tables are filtered and summed; a small copy of each remains."""

import numpy as np
import pandas as pd

rng = np.random.default_rng(0)
sums = []
for _ in range(20):
    names = rng.choice(["north", "south", "west"], 20_000)
    table = pd.DataFrame({"shop": names, "price": rng.random(20_000), "tax": rng.random(20_000)})
    sums.append(table[table["price"] > 0.5].groupby("shop")[["price", "tax"]].sum())
print(pd.concat(sums).mean())
