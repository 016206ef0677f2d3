"""Two steps of a function read the same file. Expected: duplicates, freed before the end."""

import io

import numpy as np
import pandas as pd

rows = np.random.default_rng(0).random((40_000, 6)).round(4)
text = "\n".join(["a,b,c,d,e,f", *(",".join(map(str, row)) for row in rows.tolist())])
del rows


def read():
    return pd.read_csv(io.StringIO(text))  # planted


def main():
    prices = read()
    again = read()
    places = [
        prices.sample(frac=1, replace=True, random_state=k).rank().median() for k in range(20)
    ]
    print(np.mean(places, axis=0) / again.std())


main()
