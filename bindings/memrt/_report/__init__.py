"""Recordings of whole programs, and what is made of them: pages and pictures."""
