"""python3 dev.py bench run | memory | backlog | plan | compile  [--write]"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Sequence

from bench import report
from bench.systems import PAID, SYSTEMS, System


def chosen(names: str | None, systems: Sequence[System] = SYSTEMS) -> list[System]:
    """The systems whose names contain one of the given words."""
    words = (names or "").split(",")
    return [each for each in systems if any(word in each.name for word in words)]


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="dev.py bench", description="Measurements, as ratios within one run."
    )
    commands = parser.add_subparsers(dest="command", required=True)
    for name, does in (
        ("run", "enqueue, drain, latency and idle cost, beside arq and hand-written"),
        ("memory", "resident memory after 2,000 and after 20,000 jobs"),
        ("backlog", "Redis under 100,000 queued rows, and after FLUSHALL"),
        ("plan", "claims beside a million finished rows, and the indexes they use"),
        ("compile", "builds of 1,000 jobs, beside black and datamodel-code-generator"),
    ):
        command = commands.add_parser(name, help=does)
        if name != "compile":
            command.add_argument("--systems", help="only these, comma-separated words")
        command.add_argument(
            "--write", action="store_true", help="also into docs/benchmarks.md"
        )
        if name in ("run", "compile"):
            command.add_argument("--reps", type=int, default=5)
        if name == "run":
            command.add_argument("--jobs", type=int, default=5000)
            command.add_argument(
                "--paid", action="store_true", help="jobs of two paid calls, and unpaid"
            )
    return parser.parse_args(arguments)


def main(arguments: Sequence[str]) -> int:
    options = parse(arguments)
    section = "paid" if getattr(options, "paid", False) else options.command
    module = importlib.import_module(f"bench.{section}")
    systems = chosen(getattr(options, "systems", None))
    if options.command == "compile":
        text = module.main(options.reps)
    elif section == "paid":
        text = module.main(chosen(options.systems, PAID), options.reps, options.jobs)
    elif section == "run":
        text = module.main(systems, module.Size(options.reps, options.jobs))
    else:
        text = module.main([s for s in systems if s.module == "bench.generated"])
    print(text)
    if options.write:
        report.write(section, module.TITLE, text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
