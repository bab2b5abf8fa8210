"""What paid jobs can cost at worst, and which caps do nothing: for the plan.

Upper bounds, from the spec alone.  A call that costs more than its ``max_cost`` is booked
in full and passes them; the package raises an alarm then.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from .model import Agent, Job, Model, Period
from .resolve.units import decimal, span
from .view import last_start

# How many of the shorter window the longer one holds at most, a day of 25 hours and
# weeks that begin in another month counted.
HOLDS: Final[dict[tuple[Period, Period], int]] = {
    ("hour", "day"): 25,
    ("hour", "week"): 169,
    ("hour", "month"): 745,
    ("day", "week"): 7,
    ("day", "month"): 31,
    ("week", "month"): 6,
}


@dataclass(frozen=True, slots=True)
class JobCost:
    """The worst case of one job; amounts are texts, ``fits`` counts attempts that the
    agent's caps let run at once (None = any number)."""

    job: str
    agent: str
    max_cost: str
    calls: int
    cost: str
    replayed_calls: int
    replayed: str
    fits: int | None


@dataclass(frozen=True, slots=True)
class AgentCost:
    """What an agent can spend in a day, and what to know of its caps."""

    agent: str
    owner: str
    day: str
    jobs: int | None
    on_unknown: str


def jobs(model: Model) -> list[JobCost]:
    """Every paid job whose agent exists."""
    found = []
    for job in model.jobs:
        agent = model.payer(job)
        if agent is None:
            continue
        tries = model.policy(job).tries
        replays = 1 + model.policy(job).max_replays
        caps = [amount for _, amount in (*agent.caps, *agent.each_caps)]
        caps += [] if agent.is_capped and agent.job_cap != 0 else [0]
        found.append(
            JobCost(
                job=job.wire,
                agent=agent.name,
                max_cost=decimal(job.max_cost),
                calls=tries,
                cost=_most(agent, job.max_cost * tries),
                replayed_calls=tries * replays,
                replayed=_most(agent, job.max_cost * tries * replays),
                fits=min(caps) // job.max_cost if caps and job.max_cost else None,
            )
        )
    return found


def _most(agent: Agent, amount: int) -> str:
    """An amount of one job, held down by the cap of a job; nothing without any cap."""
    if not agent.is_capped or 0 in dict((*agent.caps, *agent.each_caps)).values():
        return decimal(0)
    return decimal(amount if agent.job_cap is None else min(amount, agent.job_cap))


def agents(model: Model) -> list[AgentCost]:
    """Every agent."""
    return [
        AgentCost(
            agent=agent.name,
            owner=agent.owner,
            day=_day_text(agent),
            jobs=_jobs_a_day(model, agent),
            on_unknown=_on_unknown(model, agent),
        )
        for agent in model.agents
    ]


def a_day(agent: Agent) -> int | None:
    """The most that may be spent in a day; None where only each job is capped."""
    if not agent.is_capped or agent.job_cap == 0:
        return 0
    caps = dict(agent.caps)
    bounds = [amount for period, amount in caps.items() if period != "hour"]
    if "hour" in caps:
        bounds.append(caps["hour"] * HOLDS["hour", "day"])
    return min(bounds) if bounds else None


def _day_text(agent: Agent) -> str:
    day = a_day(agent)
    return "no limit: only each job is capped" if day is None else decimal(day)


def _jobs_a_day(model: Model, agent: Agent) -> int | None:
    """How many of its dearest job a day pays for at least."""
    day = a_day(agent)
    dearest = max((job.max_cost for job in model.paid_by(agent)), default=0)
    return None if day is None or not dearest else day // dearest


def _on_unknown(model: Model, agent: Agent) -> str:
    retried = agent.on_unknown == "retry"
    unkeyed = "paid again, both are booked" if retried else "held for a person"
    jobs = model.paid_by(agent)
    whole = [job.wire for job in jobs if job.billing == "attempt"]
    ttl = agent.provider_key_ttl
    if not agent.provider_keys or ttl is None or len(whole) == len(jobs) > 0:
        return unkeyed
    then = "paid again" if retried else "held for a person"
    said = f"sent again with its key for {span(ttl)}, then {then}"
    # The handler of such a job is the call, and is not given the key.
    return f"{said}; {', '.join(whole)}: {unkeyed}" if whole else said


def notes(model: Model) -> Iterator[str]:
    """Caps that are never reached, and tries or keys that a limit cuts short."""
    for agent in model.agents:
        yield from _unreached(agent)
        yield from _job_cap(model, agent)
        for job in model.paid_by(agent):
            yield from _keys(model, agent, job)


def _unreached(agent: Agent) -> Iterator[str]:
    """Windows of which another always acts first."""
    caps = dict(agent.caps)
    for (short, long), count in HOLDS.items():
        if short not in caps or long not in caps:
            continue
        if caps[short] >= caps[long]:
            yield (
                f"{agent.name}: the cap of {_a(short)} ({decimal(caps[short])}) is never"
                f" reached, the one of {_a(long)} ({decimal(caps[long])}) is met first."
            )
        elif caps[short] * count <= caps[long]:
            yield (
                f"{agent.name}: the cap of {_a(long)} ({decimal(caps[long])}) is never"
                f" reached, {count} times the one of {_a(short)} is"
                f" {decimal(caps[short] * count)}."
            )
    for period, amount in agent.each_caps:
        if period in caps and amount >= caps[period]:
            yield (
                f"{agent.name}: the cap of {_a(period)} for each {agent.each_by}"
                f" ({decimal(amount)}) is never reached, the agent's own is"
                f" {decimal(caps[period])}."
            )


def _job_cap(model: Model, agent: Agent) -> Iterator[str]:
    """The cap of a job against all that its attempts may cost."""
    cap, paid = agent.job_cap, model.paid_by(agent)
    if cap is None or not cap or not paid:
        return
    most = 0
    for job in paid:
        policy = model.policy(job)
        tries = job.max_cost * policy.tries
        most = max(most, tries * (1 + policy.max_replays))
        if cap < tries:
            yield (
                f"{agent.name}: the cap of a job ({decimal(cap)}) may end {job.wire}"
                f" before its {policy.tries} attempts, which may cost {decimal(tries)}."
            )
    if most <= cap:
        yield (
            f"{agent.name}: the cap of a job ({decimal(cap)}) is never reached, all"
            f" attempts and replays of one cost at most {decimal(most)}."
        )


def _keys(model: Model, agent: Agent, job: Job) -> Iterator[str]:
    """Keys that the provider forgets before the last attempt."""
    last = last_start(model, job)
    ttl = agent.provider_key_ttl
    if job.billing == "attempt" or not agent.provider_keys:
        return
    if ttl is not None and last is not None and last > ttl:
        yield (
            f"{agent.name}: the last attempt of {job.wire} may start {span(last)} after"
            f" the first, when the provider has forgotten its keys ({span(ttl)})."
        )


def _a(period: Period) -> str:
    return f"{'an' if period == 'hour' else 'a'} {period}"
