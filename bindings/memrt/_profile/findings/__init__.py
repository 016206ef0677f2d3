"""Findings: the verdict of a recording, by rules with a number, a place, a holder and a fix."""
