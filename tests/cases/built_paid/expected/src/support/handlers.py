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
    raise NotImplementedError("write support.handlers:draft_reply")


async def free(job: JobContext, payload: Free) -> None:
    raise NotImplementedError("write support.handlers:free")


async def look(job: JobContext, payload: Look) -> None:
    raise NotImplementedError("write support.handlers:look")


async def read_mail(job: JobContext, payload: ReadMail) -> None:
    raise NotImplementedError("write support.handlers:read_mail")
