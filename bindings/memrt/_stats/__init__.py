"""Statistics of this process: snapshots and exact peaks."""
