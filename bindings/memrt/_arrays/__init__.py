"""Arrays in memory of memrt: creation, adoption, alignment."""
