"""Event traces in formats of other programs."""
