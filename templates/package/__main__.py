"""The command line: ``python -m <package> COMMAND``.

Exit codes: 0 done, 1 a finding (unhealthy, refused, not found), 2 usage, malformed JSON
or a service that cannot be used.  With ``--json`` one document goes to stdout, a
failure's as ``{"error": {"code", "message"}}``; logs go to stderr.
"""

from __future__ import annotations

import argparse
import getpass
import logging
import os
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from . import codec, commands, errors

log = logging.getLogger(__package__)

# What an error is called in JSON, and its exit code; the first type that fits counts.
_FAILURES: tuple[tuple[type[Exception], str, int], ...] = (
    (errors.Unavailable, "unavailable", 2),
    (errors.SetupError, "setup", 2),
    (errors.PayloadRefused, "payload_refused", 1),
    (errors.KeyConflict, "key_conflict", 1),
    (errors.NotFound, "not_found", 1),
    (errors.QueueError, "refused", 1),
    (commands.Malformed, "malformed_json", 2),
)


class Usage(Exception):
    """The command line is not understood; carries the message for the user."""


class Parser(argparse.ArgumentParser):
    """argparse, except that an error can be printed as JSON too."""

    def error(self, message: str) -> NoReturn:
        raise Usage(f"{message} (see {self.prog} --help)")


def parser() -> Parser:
    """Every command with its options."""
    top = Parser(prog=f"python -m {__package__}", allow_abbrev=False)
    actions = top.add_subparsers(metavar="COMMAND", required=True)

    def add(name: str, run: Any, help: str, to: Any = actions) -> Parser:
        made: Parser = to.add_parser(name, help=help, allow_abbrev=False)
        made.set_defaults(run=run)
        if run is not commands.run_worker:
            made.add_argument(
                "--json",
                action="store_true",
                default=argparse.SUPPRESS,
                help="one JSON document on stdout",
            )
        return made

    command = add("migrate", commands.migrate_tables, "create or upgrade the tables")
    command.add_argument("--sql", action="store_true", help="print, change nothing")

    command = add("worker", commands.run_worker, "run jobs until told to stop")
    command.add_argument("name", nargs="?", help="which of the spec's workers")
    command.add_argument(
        "--burst", action="store_true", help="stop when nothing is due"
    )

    command = add("enqueue", commands.enqueue_job, "accept one job")
    command.add_argument("job")
    command.add_argument("payload", metavar="JSON", help="the payload; - reads stdin")
    command.add_argument("--key", help="the same key never makes a second job")
    command.add_argument("--delay", type=float, metavar="SECONDS")
    command.add_argument("--priority", choices=("high", "normal", "low"))

    command = add("show", commands.show_job, "one job and its failed attempts")
    command.add_argument("id")

    command = add("list", commands.list_jobs, "jobs, the newest first")
    command.add_argument("--state", choices=commands.STATES)
    command.add_argument("--job")
    command.add_argument("--queue")
    command.add_argument("--limit", type=_count, default=50, metavar="N")

    command = add("cancel", commands.cancel_jobs, "cancel jobs")
    command.add_argument("ids", nargs="+", metavar="ID")

    add("recover", commands.recover, "one sweep: find what died or was lost")
    add("status", commands.status, "what waits, what runs, who is alive")
    add(
        "health",
        commands.check_health,
        "exit code 1 with reasons if something is wrong",
    )

    letters = add("dead-letters", commands.list_causes, "failed jobs by cause")
    decisions = letters.add_subparsers(metavar="DECISION")
    command = add(
        "approve", commands.approve_cause, "allow replays of what failed", decisions
    )
    command.add_argument("cause")
    command.add_argument("--by", required=True, metavar="NAME", help="who decides")
    command.add_argument("--note", required=True, metavar="TEXT", help="what was fixed")
    command.add_argument("--limit", required=True, type=_count, metavar="N")
    command = add("replay", commands.replay_cause, "run approved jobs again", decisions)
    command.add_argument("cause")
    command.add_argument("--limit", type=_count, metavar="N")
    return top


def main(arguments: Sequence[str]) -> int:
    """Runs one command; returns its exit code."""
    as_json = "--json" in arguments
    try:
        options = parser().parse_args(arguments)
        is_worker = options.run is commands.run_worker
        level = logging.INFO if is_worker else logging.WARNING
        logging.basicConfig(level=level, stream=sys.stderr)
        options.by = getattr(options, "by", None) or _user()
        answer: commands.Answer = options.run(options)
    except Usage as error:
        return _failed("usage", str(error), 2, as_json)
    except KeyboardInterrupt:
        return 130
    except Exception as error:
        for kind, code, exit_code in _FAILURES:
            if isinstance(error, kind):
                return _failed(code, str(error), exit_code, as_json)
        log.exception("a bug of this package")
        text = f"{type(error).__name__}: {str(error)[:200]}"
        return _failed("internal", text, 2, as_json)
    text = codec.encode(answer.document) if as_json else answer.text
    return _printed(text, answer.exit_code)


def _count(text: str) -> int:
    number = int(text)
    if not 1 <= number <= 1_000_000:
        raise argparse.ArgumentTypeError(f"{text} is not 1 to 1000000")
    return number


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        return "unknown"  # a container's user has no name


def _failed(code: str, message: str, exit_code: int, as_json: bool) -> int:
    message = " ".join(message.split())
    if as_json:
        document = {"error": {"code": code, "message": message}}
        return _printed(codec.encode(document), exit_code)
    print(f"{__package__}: {message}", file=sys.stderr)
    return exit_code


def _printed(text: str, exit_code: int) -> int:
    try:
        if text:
            print(text, flush=True)
    except BrokenPipeError:
        # Whoever read has seen enough; Python must not complain at exit either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return exit_code


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
