"""Account of the whole memory of this process."""
