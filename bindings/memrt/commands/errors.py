"""What a command raises when it cannot do what it was asked to."""


class CommandError(Exception):
    """One sentence for the user: what was wrong and what to do. Printed in `main` alone."""
