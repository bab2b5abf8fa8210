"""The entry point: what can be answered without importing anything is answered here."""

from __future__ import annotations

import sys

from . import __version__


def main() -> int:
    """Run the command line and return its exit code."""
    if sys.argv[1:] == ["--version"]:
        print(f"qgen {__version__}")
        return 0
    if sys.argv[1:2] in (["build"], ["check"]):
        from . import noop

        code = noop.answer(sys.argv[1:])
        if code is not None:
            return code
    import gc
    import os

    from .cli import main as command_line

    gc.disable()  # a command is over before there is much to collect
    # Looking for plugins of pydantic reads every installed distribution.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    return command_line()


if __name__ == "__main__":
    sys.exit(main())
