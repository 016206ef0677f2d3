"""Record whole programs, and render the recordings as pages and pictures."""
