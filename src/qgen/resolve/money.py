"""Agents, caps and what jobs cost."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

from qgen.diagnostics.catalogue import relations as codes
from qgen.resolve.cron import runs_a_day
from qgen.resolve.draft import Draft
from qgen.resolve.units import money, seconds
from qgen.spec.finding import Finding
from qgen.spec.shape import Job
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
    agent = draft.spec.agents.get(job.agent or "")
    cap = agent.cap.job if agent and agent.cap else None
    if (
        cap is not None
        and job.max_cost is not None
        and money(cap) < money(job.max_cost)
    ):
        yield Finding(
            codes.JOB_CAP,
            draft.at(name, "max_cost"),
            f"`max_cost` is {job.max_cost}, above the agent's cap of a job ({cap}).",
            "lower max_cost, or raise the cap",
            also=((("agents", job.agent or "", "cap", "job"), "the cap"),),
        )


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
            )
