"""Worker processes of commands."""
