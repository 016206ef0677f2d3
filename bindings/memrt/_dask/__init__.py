"""Memory of Dask workers: the plugin of a worker, and the accounts of its tasks."""

import memrt.dask  # noqa: F401 - unpickled plugins and functions import private modules first
