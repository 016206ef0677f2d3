"""A table of small counts is read as int64. Expected: wide, held by visits."""

import io

import numpy as np
import pandas as pd

rows = np.random.default_rng(0).integers(1, 900, (60_000, 5))
text = "\n".join(["a,b,c,d,e", *(",".join(map(str, row)) for row in rows.tolist())])
del rows
visits = pd.read_csv(io.StringIO(text))  # planted
print(visits.mean())
