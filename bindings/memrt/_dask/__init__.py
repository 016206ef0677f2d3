"""Memory of Dask workers: the plugin of a worker, and the accounts of its tasks."""
