"""Jobs of two calls each: bare, paid by one agent, paid by 200 agents, in turns."""

from __future__ import annotations

import statistics
import sys
from collections.abc import Iterator, Sequence

from bench import provider, report, ticks
from bench.generated import Generated
from bench.stage import Stage, open_stage
from bench.systems import NO_PROVIDER, System

TITLE = "Paid calls"
AGENTS = 200
LEAST = {"one agent": 0.5, "200 agents": 0.7}

HEAD = """\
schema_version = 1

[project]
name = "bench"
handlers = "bench.handlers"

[record]
dialect = "sqlite"

[workers.main]
queues = ["default"]
concurrency = 32
"""
AGENT = """
[agents.{name}]
owner = "bench"
cap = {{ day = "1000", month = "10000" }}
"""
JOB = """
[jobs.{name}]
handler = "bench.handlers:{handler}"
{money}
[jobs.{name}.payload]
ticket_id = "uuid"
text = "str"
n = "int"
"""


def _agent(number: int) -> str:
    return f"agent_{number:03d}"


def spec(kind: str) -> str:
    """An unpaid job, and one for each agent."""
    text = [HEAD, JOB.format(name="unpaid", handler="unpaid", money="")]
    for number in range(AGENTS):
        money = f'agent = "{_agent(number)}"\nmax_cost = "0.20"\n'
        text.append(AGENT.format(name=_agent(number)))
        text.append(JOB.format(name=f"paid_{number:03d}", handler="paid", money=money))
    return "".join(text)


def adapter(option: str) -> Generated:
    many = {"unpaid": 0, "one agent": 1, "200 agents": AGENTS}[option]
    kinds = [f"Paid{number:03d}" for number in range(many)]
    return Generated(kinds or ["Unpaid"])


def drain(stage: Stage, system: System, jobs: int, port: str) -> float:
    """Jobs a second, from the first handler's first line to the last row's end."""
    provider = {} if NO_PROVIDER in system.name else {"BENCH_PROVIDER": port}
    with stage.show(system, **provider) as show:
        show.call("enqueue_many", jobs)
        show.start_worker()
        show.wait_for_ticks(jobs)
        finished = show.wait_until_finished()
        return jobs / (finished - ticks.read(show.ticks)[0])


def ratio(figures: dict[str, list[float]], system: System) -> float:
    """The median of the rounds' own ratios: both sides of one met the same machine."""
    pairs = zip(figures[system.name], figures[system.against or ""], strict=True)
    return statistics.median(mine / other for mine, other in pairs)


def verdicts(
    figures: dict[str, list[float]], systems: Sequence[System]
) -> Iterator[str]:
    for system in systems:
        if system.against in figures:
            name = f"{system.name} against {system.against}"
            found = ratio(figures, system)
            if NO_PROVIDER in system.name:
                yield f"- {name}: {found:.2f}, no bound"
            else:
                yield report.verdict(name, found, least=LEAST[system.option])


def main(systems: Sequence[System], reps: int, jobs: int) -> str:
    figures: dict[str, list[float]] = {system.name: [] for system in systems}
    with open_stage() as stage, provider.running(stage.folder) as port:
        for number in range(reps):
            for system in systems:
                now = f"round {number + 1} of {reps}: {system.name}"
                print(now, file=sys.stderr, flush=True)
                figures[system.name].append(drain(stage, system, jobs, port))
    rows = [
        [
            system.name,
            report.spread(figures[system.name]),
            f"{ratio(figures, system):.2f}" if system.against in figures else "",
        ]
        for system in systems
    ]
    bounds = "\n".join(verdicts(figures, systems))
    return f"""\
Drains of {jobs:,} jobs of two calls each, 32 at once; medians of {reps} rounds
(least-most). The provider is a process of its own that answers at once; a call is one
line of JSON each way on a new connection. Unpaid, a handler just makes the calls; paid,
each is opened and settled in the record, and its agent has caps of a day and a month.
Without a provider a call costs nothing, so the ratio shows the record alone.

{report.table(["system", "jobs/s", "x unpaid"], rows)}

{bounds or "No pair with a bound in this run."}

{report.conditions()}
"""
