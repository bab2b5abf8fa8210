"""What the jobs of support_queue do: yours to write, qgen never changes it.

A handler may be ``async def`` or ``def``.  What it returns is the job's result; what it
raises is retried as the spec says.
"""

from typing import Any

from support_queue import DraftReply, Free, Look, ReadMail
from support_queue.runner import JobContext


async def deliver(job: JobContext, result: Any) -> None:
    raise NotImplementedError("write support.handlers:deliver")


async def draft_reply(job: JobContext, payload: DraftReply) -> None:
    # A call that costs money is made like this, or no cap holds it:
    # answer = await job.paid_call(
    #     "draft",  # the step: each call of an attempt has a name of its own
    #     lambda key: client.create(..., idempotency_key=key),
    #     max_cost="0.20",  # reserved before it
    #     cost=lambda response: price_of(response.usage),  # booked after it
    #     keep=lambda response: response.text,  # stored, and what paid_call returns
    # )
    raise NotImplementedError("write support.handlers:draft_reply")


async def free(job: JobContext, payload: Free) -> None:
    raise NotImplementedError("write support.handlers:free")


async def look(job: JobContext, payload: Look) -> None:
    # A call that costs money is made like this, or no cap holds it:
    # answer = await job.paid_call(
    #     "draft",  # the step: each call of an attempt has a name of its own
    #     lambda key: client.create(..., idempotency_key=key),
    #     max_cost="999999999.999999",  # reserved before it
    #     cost=lambda response: price_of(response.usage),  # booked after it
    #     keep=lambda response: response.text,  # stored, and what paid_call returns
    # )
    raise NotImplementedError("write support.handlers:look")


async def read_mail(job: JobContext, payload: ReadMail) -> None:
    # This attempt is one paid call; what it has cost is added up, or max_cost is booked:
    # job.charge("0.000001")
    raise NotImplementedError("write support.handlers:read_mail")
