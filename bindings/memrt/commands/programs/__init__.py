"""Programs that commands run: start, recording, summary."""
