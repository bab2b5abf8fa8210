"""python3 dev.py bench run | memory | backlog | plan | compile  [--write]

python3 dev.py bench run --target all        every backend in every mode
python3 dev.py bench run --target rq --mode fork
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Iterator, Sequence

from bench import report
from bench.systems import CELLS, PAID, SYSTEMS, System

REPS, PAID_JOBS = 5, 5000


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
        ("run", "enqueue, drain, latency and idle cost, beside bare and hand-written"),
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
            command.add_argument("--reps", type=int, help="rounds")
        if name == "run":
            command.add_argument(
                "--target", choices=("arq", "rq", "celery", "all"), default="arq"
            )
            command.add_argument(
                "--mode", choices=("fork", "simple", "prefork", "threads")
            )
            command.add_argument(
                "--jobs", type=int, help="of a drain; a number for each mode otherwise"
            )
            command.add_argument(
                "--paid", action="store_true", help="jobs of two paid calls, and unpaid"
            )
    options = parser.parse_args(arguments)
    if options.command == "run" and not cells(options.target, options.mode):
        parser.error(f"{options.target} has no mode {options.mode}")
    if getattr(options, "paid", False) and options.target != "arq":
        parser.error("--paid is measured on arq")
    return options


def cells(target: str, mode: str | None) -> list[str]:
    """The kinds of `bench run`: a backend's, in one mode or in all."""
    return [
        kind
        for kind in CELLS
        if target in ("all", kind.partition("-")[0])
        and mode in (None, kind.partition("-")[2])
    ]


def run_cells(options: argparse.Namespace) -> Iterator[tuple[str, str, str]]:
    """Section, title and text of each cell, which is a run of its own."""
    from bench import run  # not before: a started process counts this one's memory

    for kind in cells(options.target, options.mode):
        if systems := chosen(options.systems, CELLS[kind]):
            reps, jobs = options.reps or run.REPS[kind], options.jobs or run.JOBS[kind]
            size = run.Size(reps, jobs)
            section = "run" if kind == "arq" else f"run-{kind}"
            yield section, run.title(kind), run.main(systems, size)


def measured(options: argparse.Namespace) -> Iterator[tuple[str, str, str]]:
    """Section, title and text of everything that was asked for."""
    section = "paid" if getattr(options, "paid", False) else options.command
    if section == "run":
        yield from run_cells(options)
        return
    module = importlib.import_module(f"bench.{section}")
    if section == "compile":
        text = module.main(options.reps or REPS)
    elif section == "paid":
        systems = chosen(options.systems, PAID)
        text = module.main(systems, options.reps or REPS, options.jobs or PAID_JOBS)
    else:
        systems = chosen(options.systems)
        text = module.main([s for s in systems if s.module == "bench.generated"])
    yield section, module.TITLE, text


def main(arguments: Sequence[str]) -> int:
    options = parse(arguments)
    for section, title, text in measured(options):
        print(text, flush=True)
        if options.write:
            report.write(section, title, text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
