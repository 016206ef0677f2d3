"""Define the exception that commands raise on failure."""


class CommandError(Exception):
    """A command failed. The message is one sentence: the problem and the remedy.

    Only `main` prints the message.
    """
