"""The entry point: what can be answered without importing anything is answered here."""

from __future__ import annotations

import sys

from . import __version__


def main() -> int:
    """Run the command line and return its exit code."""
    if sys.argv[1:] == ["--version"]:
        print(f"qgen {__version__}")
        return 0
    from .cli import main as command_line

    return command_line()


if __name__ == "__main__":
    sys.exit(main())
