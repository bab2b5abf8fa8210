"""The command line: ``python -m <package> COMMAND``."""

from __future__ import annotations

import json
import logging
import sys

from . import migrate
from .errors import QueueError


def main(arguments: list[str]) -> int:
    logging.basicConfig(level=logging.INFO, stream=sys.stderr)
    try:
        if arguments[0] == "migrate":
            print(json.dumps(migrate.upgrade()))
            return 0
        if arguments[0] == "worker":
            from . import worker

            return worker.run(None, "--burst" in arguments)
    except QueueError as error:
        print(error, file=sys.stderr)
    return 2


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
