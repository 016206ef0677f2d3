"""Live buffers, their allocation sites, and measurements of a part of a program."""
