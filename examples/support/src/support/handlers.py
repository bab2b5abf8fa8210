"""What the jobs of support_queue do: yours to write, qgen never changes it.

A handler may be ``async def`` or ``def``.  What it returns is the job's result; what it
raises is retried as the spec says.  These answer from a few rules, so the example runs
without a network and gives the same answers every time.
"""

from __future__ import annotations

from collections import Counter
from typing import Any
from uuid import UUID

from support_queue import Classify, Digest, DraftReply, IndexAttachment
from support_queue.runner import JobContext

from . import writer
from .errors import UnknownTicket

TOPICS = {
    "billing": ("invoice", "refund", "charge", "price"),
    "access": ("password", "login", "locked", "account"),
    "delivery": ("parcel", "late", "shipped", "tracking"),
}
URGENT = ("urgent", "today", "immediately", "outage")


async def classify(job: JobContext, payload: Classify) -> dict[str, str | bool]:
    """The topic with the most words in the ticket; ``other`` if there is none."""
    words = words_of(f"{payload.subject} {payload.text}")
    hits = {topic: sum(words[word] for word in TOPICS[topic]) for topic in TOPICS}
    topic = max(hits, key=lambda name: hits[name])
    return {
        "topic": topic if hits[topic] else "other",
        "urgent": any(words[word] for word in URGENT),
    }


async def draft_reply(job: JobContext, payload: DraftReply) -> dict[str, str]:
    """A first answer for a person to read and send; what it costs is booked.

    Whatever becomes of the worker, a draft that was paid for is not bought again.
    """
    if payload.ticket_id == UUID(int=0):
        raise UnknownTicket(f"there is no ticket {payload.ticket_id}")
    words = words_of(payload.text)
    topics = [topic for topic in TOPICS if any(words[word] for word in TOPICS[topic])]
    draft = await job.paid_call(
        "draft",
        lambda key: job.state.writer.complete(
            payload.tone, topics, payload.due, key=key
        ),
        max_cost="0.05",
        cost=writer.price,
        keep=lambda answer: answer.text,
    )
    return {"draft": draft}


def alarm(job: JobContext, error: Any) -> None:
    """A draft is a dead letter: somebody has to write to the customer."""
    job.log.warning("no draft: %s", error)


def index_attachment(job: JobContext, payload: IndexAttachment) -> dict[str, int]:
    """The twenty most frequent words. A plain function runs in a thread."""
    counts: Counter[str] = Counter()
    for number, line in enumerate(payload.lines, start=1):
        if job.cancelled:
            break
        counts += words_of(line)
        if number % 1000 == 0:
            job.progress(number / len(payload.lines), f"{number} lines")
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return dict(ranked[:20])


async def digest(job: JobContext, payload: Digest) -> dict[str, str]:
    """One paragraph for the morning meeting."""
    topics = sorted(payload.topics.items(), key=lambda item: (-item[1], item[0]))
    listed = ", ".join(f"{name} {count}" for name, count in topics) or "none"
    period = "Day" if payload.kind == "daily" else "Week"
    text = (
        f"{period} of {payload.day}: {payload.open_tickets} open. By topic: {listed}."
    )
    return {"digest": text}


def words_of(text: str) -> Counter[str]:
    """Words in lower case, without the punctuation around them."""
    return Counter(word.strip(".,:;!?()\"'").lower() for word in text.split())
