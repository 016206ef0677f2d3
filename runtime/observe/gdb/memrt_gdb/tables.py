"""Tables and sizes as text."""

import gdb

TEXTS = ("policy", "scope", "name", "kind")


def human(size):
    units = ["TiB", "GiB", "MiB", "KiB", "B"]
    amount = float(size)
    while amount >= 1024 and len(units) > 1:
        amount /= 1024
        units.pop()
    return f"{size} B" if units[-1] == "B" else f"{amount:.1f} {units[-1]}"


def show_table(heads, rows):
    """Write a table with columns of minimal width: numbers right-aligned, text left-aligned."""
    lines = [heads, *([str(cell) for cell in row] for row in rows)]
    for column, head in enumerate(heads):
        width = max(len(line[column]) for line in lines)
        adjust = str.ljust if head in TEXTS else str.rjust
        for row, line in enumerate(lines):
            lines[row] = [*line[:column], adjust(line[column], width), *line[column + 1 :]]
    for line in lines:
        gdb.write("  ".join(line).rstrip() + "\n")
