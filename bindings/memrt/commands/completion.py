"""``memrt completion``: what a shell needs to complete memrt's commands."""

from __future__ import annotations

import argparse

from memrt._extras import MissingPackageError, needed
from memrt.commands.errors import CommandError

HELP = "Print the script by which a shell completes memrt's commands and options."

EXAMPLES = """\
It is for the command `memrt`, which is `python -m memrt` by a shorter name. It needs shtab:
pip install 'memrt[report]'

exit status: 0, or 2 when shtab is missing

examples:
  eval "$(memrt completion bash)"                  for this shell; in ~/.bashrc for all
  memrt completion zsh > ~/.zfunc/_memrt           where fpath has ~/.zfunc
  memrt completion tcsh > ~/.memrt.tcsh            to be sourced in ~/.tcshrc
"""


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=["bash", "zsh", "tcsh"], help="the shell to print it for")


def execute(arguments: argparse.Namespace) -> None:
    from memrt.commands import parser

    try:
        shtab = needed("shtab", "completion")
    except MissingPackageError as error:
        raise CommandError(str(error)) from None
    print(shtab.complete(parser("memrt"), arguments.shell))
