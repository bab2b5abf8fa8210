"""The end of a command that cannot go on."""

from __future__ import annotations


class Stop(Exception):
    """One sentence for the user: exit code 2."""
