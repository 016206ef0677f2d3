"""Event traces: the recorder, and the reader of trace files."""
