"""What the jobs of support_queue do: yours to write, qgen never changes it.

A handler may be ``async def`` or ``def``.  What it returns is the job's result; what it
raises is retried as the spec says.
"""

from support_queue import DraftReply
from support_queue.runner import JobContext


async def draft_reply(job: JobContext, payload: DraftReply) -> None:
    raise NotImplementedError("write support_handlers:draft_reply")
