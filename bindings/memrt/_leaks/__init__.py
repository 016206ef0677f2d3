"""Leaks and growth of memory."""
