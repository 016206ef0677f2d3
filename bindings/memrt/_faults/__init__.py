"""Fault injection: plans of failures, and functions under every failure."""
