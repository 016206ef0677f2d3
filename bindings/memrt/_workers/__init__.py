"""Memory of worker processes: settings for the workers, and their statistics."""
