"""Define the exception for functions that cannot become an object file."""


class ObjectError(Exception):
    """A function cannot become an object file. The message gives the reason and the remedy."""
