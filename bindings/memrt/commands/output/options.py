"""Options that several commands share."""

from __future__ import annotations

import argparse


def add_output_options(parser: argparse.ArgumentParser) -> None:
    """Add the options shared by all commands that write pages and pictures."""
    parser.add_argument("--plot", metavar="PNG", help="write a picture of the timeline to PNG")
    parser.add_argument("--force", action="store_true", help="replace existing files")
