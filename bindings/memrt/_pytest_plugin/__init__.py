"""Parts of the pytest plugin: marks, verdicts, outcomes of tests, summary."""
