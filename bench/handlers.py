"""The handler of bench/specs/queue.toml."""

from typing import Any

from bench import ticks


async def noop(job: Any, payload: Any) -> None:
    await ticks.handle()
