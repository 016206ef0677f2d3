"""``memrt completion``: print a shell script that completes memrt's commands."""

from __future__ import annotations

import argparse

from memrt._support.extras import MissingPackageError, needed
from memrt.commands.output.errors import CommandError

HELP = "Print a script that completes memrt's commands and options in a shell."

EXAMPLES = """\
The script is for the command `memrt`, short for `python -m memrt`. To print the script, the package
shtab must be installed: pip install 'memrt[report]'

exit status: 0; 2 if shtab is missing

examples:
  eval "$(memrt completion bash)"                  for this shell; in ~/.bashrc for all shells
  memrt completion zsh > ~/.zfunc/_memrt           if fpath contains ~/.zfunc
  memrt completion tcsh > ~/.memrt.tcsh            then source the file in ~/.tcshrc
"""


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=["bash", "zsh", "tcsh"], help="shell that runs the script")


def execute(arguments: argparse.Namespace) -> None:
    try:
        shtab = needed("shtab", "completion")
    except MissingPackageError as error:
        raise CommandError(str(error)) from None
    print(shtab.complete(arguments.make_parser("memrt"), arguments.shell))
