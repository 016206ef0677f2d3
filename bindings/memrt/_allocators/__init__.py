"""Allocators below policies: their forms in Python, adaptors, and placement of pages."""
