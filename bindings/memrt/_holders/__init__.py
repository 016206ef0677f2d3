"""Objects that keep buffers alive, and small views over large buffers."""
