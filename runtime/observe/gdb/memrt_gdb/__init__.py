"""Support of memrt in gdb: pretty-printers, and the commands `memrt live`, `stats` and `find`.

The modules read memory and field names only, and call no function of the program. The commands
therefore work on a core file as on a process.
"""

import gdb.printing

from .commands import Find, Live, Prefix, Stats
from .printers import printers


def install(objfile):
    """Register all commands, and the printers for an object file, or for all files for None."""
    gdb.printing.register_pretty_printer(objfile, printers(), replace=True)
    for command in (Prefix, Live, Stats, Find):
        command()
