"""Live view of processes that share statistics: tables, keys, recordings."""
