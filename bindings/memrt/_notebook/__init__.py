"""Magics of IPython and Jupyter."""
