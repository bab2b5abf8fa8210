"""Times that must agree: beats and silence, timeouts, grace."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from qgen.diagnostics.catalogue import relations as codes
from qgen.diagnostics.catalogue.values import OUT_OF_RANGE
from qgen.resolve.draft import Draft
from qgen.resolve.units import limit, seconds, span
from qgen.spec.finding import Finding
from qgen.spec.shape import Job

# A value beyond these would make recovery spin, or never come.
RANGES: Final = (
    ("stall", "heartbeat", "100ms", "1h"),
    ("stall", "after", "300ms", "1d"),
    ("stall", "sweep", "100ms", "1h"),
    ("shutdown", "grace", "100ms", "1d"),
)


def check(draft: Draft) -> Iterator[Finding]:
    """Stall, then each job's times."""
    for table, key, least, most in RANGES:
        yield from in_range(draft, table, key, least, most)
    stall = draft.spec.stall
    beats = 3 * seconds(stall.heartbeat)
    if seconds(stall.after) < beats:
        yield Finding(
            codes.STALL_TOO_SHORT,
            ("stall", "after"),
            f"`stall.after` is {stall.after}, less than three times `stall.heartbeat`"
            f" ({stall.heartbeat}).",
            f'write after = "{span(beats)}" or more, or a shorter heartbeat',
            also=((("stall", "heartbeat"), "the heartbeat"),),
        )
    for name, job in draft.jobs.items():
        yield from of_job(draft, name, job)


def in_range(
    draft: Draft, table: str, key: str, least: str, most: str
) -> Iterator[Finding]:
    """One time between two others."""
    text = getattr(getattr(draft.spec, table), key)
    if not seconds(least) <= seconds(text) <= seconds(most):
        message = f"`{table}.{key}` is {text}, which is out of its range."
        write = f"write a duration from {least} to {most}"
        yield Finding(OUT_OF_RANGE, (table, key), message, write)


def of_job(draft: Draft, name: str, job: Job) -> Iterator[Finding]:
    """One job's timeout against its other times."""
    timeout = limit(job.timeout)
    at_timeout = draft.at(name, "timeout")
    also = ((at_timeout, "the timeout"),)
    if timeout is None:
        yield Finding(
            codes.NO_TIMEOUT,
            at_timeout,
            'with `timeout` = "none" a handler that hangs is never stopped.',
            "write the longest time that a run may take",
        )
    elif job.soft_timeout and seconds(job.soft_timeout) >= timeout:
        yield Finding(
            codes.SOFT_TIMEOUT,
            draft.at(name, "soft_timeout"),
            f"`soft_timeout` is {job.soft_timeout}, not below `timeout` ({job.timeout}).",
            "write a time below the timeout",
            also=also,
        )
    if holds := held_by_a_stop(draft, name, job):
        yield holds
    if not job.longest:
        return
    longest = seconds(job.longest)
    at_longest = draft.at(name, "longest")
    if timeout is not None and longest > timeout:
        yield Finding(
            codes.LONGEST,
            at_longest,
            f"`longest` is {job.longest}, above `timeout` ({job.timeout}).",
            f'write timeout = "{job.longest}" or more',
            also=also,
        )
    elif longest > seconds(draft.spec.shutdown.grace) and not holds:
        grace = draft.spec.shutdown.grace
        yield Finding(
            codes.GRACE,
            at_longest,
            f"`longest` is {job.longest}, above `shutdown.grace` ({grace}): at a stop such"
            " a job is released and begins anew, not finished.",
            "raise grace if a stop may take so long; the job is kept either way, its work"
            " so far is not",
            also=((("shutdown", "grace"), "the grace"),),
            unless=(draft.at(name, "agent"), ("agents", job.agent or "")),
        )


def held_by_a_stop(draft: Draft, name: str, job: Job) -> Finding | None:
    """A paid run that a stop may cut, where nothing proves what its call has cost.

    With keys the call is sent again; without, it waits for a person or is paid again.
    A handler that is the call itself (``billing = "attempt"``) is given no key.
    """
    agent = draft.spec.agents.get(job.agent or "")
    if agent is None or (agent.provider_keys and job.billing != "attempt"):
        return None
    grace = draft.spec.shutdown.grace
    key = "longest" if job.longest else "timeout"
    runs = limit(job.longest or job.timeout)
    if runs is not None and runs <= seconds(grace):
        return None
    then = "is paid again" if agent.on_unknown == "retry" else "waits for a person"
    return Finding(
        codes.GRACE_OF_PAID,
        draft.at(name, key),
        f"`{key}` is {job.longest or job.timeout}, above `shutdown.grace` ({grace}): a stop"
        f" may cut a paid call of `{job.agent}`, and the job {then}.",
        "raise grace, write longest = the longest run to expect, or "
        + (
            'buy with job.paid_call and billing = "calls"'
            if agent.provider_keys
            else "give the agent provider_keys if its provider takes them"
        ),
        also=((("shutdown", "grace"), "the grace"),),
        unless=(
            draft.at(name, "longest"),
            draft.at(name, "agent"),
            draft.at(name, "billing"),
            ("agents", job.agent or "", "provider_keys"),
        ),
    )
