"""The handlers of the money tests: this text is `tested_handlers.py` of a package.

A job buys `steps` answers one after the other and returns them.  What the provider does
is in the payload, so a test says everything in one place.
"""

import asyncio
import json
import os
import signal
import socket
import sqlite3
import time

LEDGER = os.environ["QGEN_TEST_LEDGER"]
PROVIDER = os.environ["QGEN_TEST_PROVIDER"]


class ProviderError(Exception):
    def __init__(self, status, retry_after=0):
        super().__init__(f"status {status}")
        self.status_code = status
        if retry_after:
            self.retry_after = retry_after


def note(what, job, n):
    line = f"{what} {n} {job.attempt} {os.getpid()} {time.time()} {job.id}\n"
    file = os.open(LEDGER, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(file, line.encode())
    finally:
        os.close(file)


def request_of(job, step, key, payload):
    return (
        json.dumps(
            {
                "job": job.id,
                "step": step,
                "key": key,
                "cost": payload.cost,
                "do": payload.do,
                "pid": os.getpid(),
            }
        ).encode()
        + b"\n"
    )


def understood(line):
    if not line:
        raise ConnectionResetError("no answer")
    answer = json.loads(line)
    if answer["status"] != 200:
        raise ProviderError(answer["status"], answer.get("retry_after", 0))
    if answer.get("unreadable"):
        raise ProviderError(200)
    return answer


async def ask(job, step, key, payload):
    if payload.do.startswith("refused"):
        raise ConnectionRefusedError("nobody listens")
    reader, writer = await asyncio.open_connection("127.0.0.1", int(PROVIDER))
    try:
        writer.write(request_of(job, step, key, payload))
        return understood(await reader.readline())
    finally:
        writer.close()


def ask_plain(job, step, key, payload):
    with socket.create_connection(("127.0.0.1", int(PROVIDER))) as connection:
        connection.sendall(request_of(job, step, key, payload))
        return understood(connection.makefile("rb").readline())


async def buy(job, payload, step):
    return await job.paid_call(
        step,
        lambda key: ask(job, step, key, payload),
        max_cost=payload.most,
        cost=lambda answer: answer["cost"],
        keep=lambda answer: {"text": answer["text"]},
    )


async def work(job, payload):
    note("start", job, payload.n)
    kept = [await buy(job, payload, f"s{n}") for n in range(payload.steps)]
    if payload.then == "raise":
        raise ValueError("after its calls")
    note("end", job, payload.n)
    return kept


async def swallow(job, payload):
    """Goes on whatever its call has raised."""
    note("start", job, payload.n)
    try:
        await buy(job, payload, "s0")
    except Exception:
        note("caught", job, payload.n)
    note("end", job, payload.n)
    return "fine"


async def impatient(job, payload):
    """Gives its call a time limit of its own, and shrugs."""
    note("start", job, payload.n)
    try:
        await asyncio.wait_for(buy(job, payload, "s0"), 0.3)
    except TimeoutError:
        note("caught", job, payload.n)
    return "fine"


async def locker(job, payload):
    """Keeps a write transaction of its own open on the record's file."""
    note("start", job, payload.n)
    path = os.environ["QGEN_TEST_ENGINE_DATABASE"].removeprefix("sqlite:///")
    own = sqlite3.connect(path)
    own.execute("CREATE TABLE IF NOT EXISTS tickets (n integer)")
    own.execute("INSERT INTO tickets VALUES (1)")
    try:
        return await buy(job, payload, "s0")
    finally:
        own.rollback()
        own.close()


async def loop(job, payload):
    note("start", job, payload.n)
    for _ in range(2):
        await buy(job, payload, "same")


async def crash(job, payload):
    """Dies at its first attempt right after the provider has answered."""
    note("start", job, payload.n)

    async def call(key):
        answer = await ask(job, "s0", key, payload)
        if job.attempt == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        return answer

    kept = await job.paid_call("s0", call, cost=lambda answer: answer["cost"])
    note("end", job, payload.n)
    return kept


def plain(job, payload):
    note("start", job, payload.n)
    kept = []
    for n in range(payload.steps):
        step = f"s{n}"
        kept.append(
            job.paid_call(
                step,
                lambda key, step=step: ask_plain(job, step, key, payload),
                max_cost=payload.most,
                cost=lambda answer: answer["cost"],
                keep=lambda answer: {"text": answer["text"]},
            )
        )
        if payload.then == "sleep":
            time.sleep(2)
    note("end", job, payload.n)
    return kept


async def whole(job, payload):
    """Billed as a whole: its calls are its own affair."""
    note("start", job, payload.n)
    answer = await ask(job, "whole", "none", payload)
    job.charge(answer["cost"])
    note("end", job, payload.n)
    return {"text": answer["text"]}


async def odd(job, payload):
    """Costs and answers that no record takes as they are."""
    note("start", job, payload.n)
    costs = {
        "negative": lambda a: -1,
        "nan": lambda a: float("nan"),
        "infinite": lambda a: float("inf"),
        "text": lambda a: "a lot",
        "true": lambda a: True,
        "raises": lambda a: 1 / 0,
        "above": lambda a: "9.5",
        "none": lambda a: None,
        "fine": lambda a: a["cost"],
    }
    answers = {
        "fine": lambda a: a,
        "raises": lambda a: 1 / 0,
        "bytes": lambda a: {"b": b"\xff", "nan": float("nan"), "set": {1, 2}},
    }
    cost, _, keep = payload.then.partition(",")
    kept = await job.paid_call(
        "s0",
        lambda key: ask(job, "s0", key, payload),
        cost=costs[cost],
        keep=answers[keep or "fine"],
    )
    note("end", job, payload.n)
    return kept


async def free(job, payload):
    note("start", job, payload.n)
    return "free"


async def reply(job, result):
    note("reply", job, 0)


async def on_failed(job, error):
    note("failed", job, 0)
