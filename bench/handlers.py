"""The handlers of bench/specs/queue.toml and of bench/paid.py."""

import os
from typing import Any

from bench import provider, ticks

STEPS = ("plan", "draft")


async def noop(job: Any, payload: Any) -> None:
    await ticks.handle()


async def ask(step: str, key: str) -> dict[str, str]:
    """The provider in its process, or, without one, an answer out of thin air."""
    if "BENCH_PROVIDER" in os.environ:
        return await provider.ask(step, key)
    return {"text": f"an answer to {step}", "cost": "0.01"}


async def unpaid(job: Any, payload: Any) -> None:
    ticks.tick()
    for step in STEPS:
        await ask(step, job.id)


async def paid(job: Any, payload: Any) -> None:
    ticks.tick()
    for step in STEPS:
        await job.paid_call(
            step,
            lambda key, step=step: ask(step, key),
            max_cost="0.05",
            cost=lambda answer: answer["cost"],
        )
