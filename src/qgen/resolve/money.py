"""Agents, caps and what jobs cost."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

from qgen.diagnostics.catalogue import relations as codes
from qgen.resolve.cron import runs_a_day
from qgen.resolve.draft import Draft
from qgen.resolve.units import money, seconds
from qgen.spec.finding import Finding
from qgen.spec.shape import Agent, CapEach, Job
from qgen.spec.spans import Path


def check(draft: Draft) -> Iterator[Finding]:
    """Every agent by itself, every job against its agent, every day against its cap."""
    for name, agent in draft.spec.agents.items():
        at: Path = ("agents", name)
        if agent.cap is None or not agent.cap.model_fields_set:
            yield Finding(
                codes.NO_CAP,
                (*at, "cap"),
                f"the agent `{name}` has no cap, so all its paid jobs are denied.",
                'write cap = { day = "…" }',
                at="key",
                unless=((*at, "cap"),),
            )
        for path, what, amount in caps(name, agent):
            if not money(amount):
                yield Finding(
                    codes.ZERO_CAP,
                    path,
                    f"the cap of {what} is zero, so all paid jobs of `{name}` are denied.",
                    "raise it when the agent may spend again",
                )
        if agent.provider_keys and agent.provider_key_ttl is None:
            yield Finding(
                codes.KEY_LIFETIME,
                (*at, "provider_keys"),
                "`provider_keys` needs `provider_key_ttl`.",
                'write how long the provider knows a key, such as "24h"',
                at="key",
                also=(((*at, "provider_key_ttl"), "its lifetime"),),
            )
    for name, job in draft.jobs.items():
        yield from of_job(draft, name, job)
    yield from days(draft)


def of_job(draft: Draft, name: str, job: Job) -> Iterator[Finding]:
    """Agent and cost go together, and an attempt fits under the job's cap."""
    if job.agent is not None and job.max_cost is None:
        yield Finding(
            codes.NO_MAX_COST,
            draft.at(name, "agent"),
            "a paid job needs `max_cost`, the most one attempt may cost.",
            'write max_cost = "…"',
            at="key",
            also=((draft.at(name, "max_cost"), "the cost"),),
        )
    path = draft.at(name, "max_cost")
    if job.agent is None and job.max_cost is not None and path[0] == "jobs":
        yield Finding(
            codes.NO_AGENT,
            path,
            "`max_cost` has no effect on a job without an agent.",
            'write agent = "…", or leave it out',
            at="key",
            also=((draft.at(name, "agent"), "the agent"),),
        )
    billing = draft.at(name, "billing")
    given = "billing" in job.model_fields_set
    if job.agent is None and given and billing[0] == "jobs":
        yield Finding(
            codes.NO_AGENT,
            billing,
            "`billing` has no effect on a job without an agent.",
            'write agent = "…", or leave it out',
            at="key",
            also=((draft.at(name, "agent"), "the agent"),),
        )
    if job.agent is not None and job.max_cost is not None:
        yield from fits(draft, name, job, job.agent, job.max_cost)


def fits(
    draft: Draft, name: str, job: Job, payer: str, max_cost: str
) -> Iterator[Finding]:
    """An attempt reserves something, and that fits under every cap that is not zero."""
    at = draft.at(name, "max_cost")
    if not money(max_cost):
        yield Finding(
            codes.ZERO_COST,
            at,
            "`max_cost` is zero: a paid job that reserves nothing is held by no cap.",
            "write the most one attempt may cost, or leave the agent out",
        )
        return
    agent = draft.spec.agents.get(payer)
    for path, what, cap in caps(payer, agent) if agent else ():
        if 0 < money(cap) < money(max_cost):
            code = codes.JOB_CAP if path[-1] == "job" else codes.WINDOW_CAP
            yield Finding(
                code,
                at,
                f"`max_cost` is {max_cost}, above the agent's cap of {what} ({cap}).",
                "lower max_cost, or raise the cap",
                also=((path, "the cap"),),
            )


def caps(name: str, agent: Agent) -> Iterator[tuple[Path, str, str]]:
    """Every cap of an agent: where it stands, of what it is, and its amount."""
    for table in ("cap", "cap_each"):
        given = getattr(agent, table)
        for key in ("hour", "day", "week", "month", "job"):
            amount = getattr(given, key, None)
            if amount is not None:
                what = f"{'an' if key == 'hour' else 'a'} {key}"
                of = f" for each {given.by}" if isinstance(given, CapEach) else ""
                yield ("agents", name, table, key), f"{what}{of}", amount


def days(draft: Draft) -> Iterator[Finding]:
    """What the schedules of an agent may cost in a day."""
    costs: dict[str, Decimal] = {}
    for schedule in draft.spec.schedules.values():
        job = draft.jobs.get(schedule.job)
        if job is None or not job.agent or job.max_cost is None or not schedule.enabled:
            continue
        runs = 86400 / seconds(schedule.every) if schedule.every else 0.0
        runs = runs_a_day(schedule.cron) if schedule.cron else runs
        cost = money(job.max_cost) * Decimal(int(runs))
        costs[job.agent] = costs.get(job.agent, Decimal(0)) + cost
    for name, cost in sorted(costs.items()):
        agent = draft.spec.agents.get(name)
        day = agent.cap.day if agent and agent.cap else None
        if day is not None and cost > money(day):
            yield Finding(
                codes.DAY_CAP,
                ("agents", name, "cap", "day"),
                f"the scheduled runs of a day may cost {cost:f}, above the cap of a day"
                f" ({day}).",
                "raise the cap, lower max_cost, or run less often",
                unless=(("schedules",), ("jobs",), ("defaults",)),
            )
