"""One step of one system, in a process of its own: python -m bench.child SYSTEM STEP.

The steps that measure print one JSON line.
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
import time
import uuid

from bench import ticks
from bench.systems import Client, Payload, find

CHUNK = 1000  # jobs in one bulk call
WARM_UP = 5  # jobs that only open connections and fill caches
PATIENCE = 15.0


def payload(number: int) -> Payload:
    return {"ticket_id": str(uuid.uuid4()), "text": "x" * 200, "n": number}


async def enqueue(client: Client, jobs: int) -> dict[str, float]:
    """Jobs a second, one call after the other."""
    payloads = [payload(number) for number in range(jobs + WARM_UP)]
    await client.open()
    for each in payloads[:WARM_UP]:
        await client.enqueue(each)
    began = time.perf_counter()
    for each in payloads[WARM_UP:]:
        await client.enqueue(each)
    took = time.perf_counter() - began
    await client.close()
    return {"per_second": jobs / took}


async def enqueue_many(client: Client, jobs: int) -> dict[str, float]:
    """Jobs a second, CHUNK in a call."""
    payloads = [payload(number) for number in range(jobs)]
    await client.open()
    began = time.perf_counter()
    for start in range(0, jobs, CHUNK):
        await client.enqueue_many(payloads[start : start + CHUNK])
    took = time.perf_counter() - began
    await client.close()
    return {"per_second": jobs / took}


async def latency(client: Client, jobs: int) -> dict[str, list[float]]:
    """Seconds from just before the enqueue call to the handler's first line.

    One job at a time, on an idle worker. The pause between two jobs is random, else
    they would arrive in step with the worker's polling.
    """
    pauses = random.Random(1)
    path = ticks.tick_file()
    waits: list[float] = []
    await client.open()
    for number in range(jobs + WARM_UP):
        seen = ticks.count(path)
        began = time.time()
        await client.enqueue(payload(number))
        while ticks.count(path) <= seen:
            if time.time() > began + PATIENCE:
                raise TimeoutError("a job did not start")
            await asyncio.sleep(0.001)
        waits.append(ticks.read(path)[seen] - began)
        await asyncio.sleep(pauses.uniform(0.03, 0.13))
    await client.close()
    return {"seconds": waits[WARM_UP:]}


def main(name: str, step: str, *numbers: str) -> None:
    adapter = find(name).adapter()
    if step == "setup":
        adapter.setup()
    elif step == "worker":
        adapter.worker()
    else:
        measure = {"enqueue": enqueue, "enqueue_many": enqueue_many}
        measured = (
            asyncio.run(latency(adapter.client(), int(numbers[0])))
            if step == "latency"
            else asyncio.run(measure[step](adapter.client(), int(numbers[0])))
        )
        print(json.dumps(measured))


if __name__ == "__main__":
    main(*sys.argv[1:])
