"""Attach to a running process: check the process, run a request in it, read the answer."""
