"""Programs in a full control group end by MemoryError under memrt, in 20 of 20 runs."""

import sys

import full_group

ROUNDS = 20

sys.exit(not full_group.run_rounds(ROUNDS))
