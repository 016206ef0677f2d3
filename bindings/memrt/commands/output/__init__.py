"""Output of commands: reports, files, tables, progress."""
