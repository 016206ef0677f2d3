"""Units, options, import paths, and other helpers of all modules."""
