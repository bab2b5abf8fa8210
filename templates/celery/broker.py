"""What Redis is told and asked, in celery's own format.

A message is a celery task message (protocol 2) at the end of a list: the task is the
job's name, its id the transport id, its arguments the row's id and the dispatch number.
There are two lists per queue, and the one for high rows is emptied first.  Celery never
dedupes: the dispatch number and the claim do.  Taking a message removes it: the row is
the record, and what is lost on the way is found by ``known``.
"""

from __future__ import annotations

import base64
import json
import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Final, cast

from .record import Message
from .registry import PROJECT
from .server import Server, failures

TARGET: Final = "celery"

# Before each of celery's keys: nothing of another program, of another project or of
# another backend of this one has such a name.
PREFIX: Final = f"{PROJECT.name}:celery:"

# Celery's priorities on Redis: 0 is the highest, and the only one without a suffix.
HIGH: Final = 0
NORMAL: Final = 9
_SEPARATOR: Final = "\x06\x16"

_SLICE: Final = 2000  # messages read at once


def queue_key(queue: str, priority: int = NORMAL) -> str:
    """The list of a queue's messages of this priority, as kombu names it."""
    return f"{PREFIX}{queue}" + (f"{_SEPARATOR}{priority}" if priority else "")


def keys_of(queues: Iterable[str]) -> list[str]:
    """The lists of these queues, in the order in which they are emptied."""
    return [queue_key(queue, step) for queue in queues for step in (HIGH, NORMAL)]


def envelope(message: Message) -> dict[str, Any]:
    """The message as celery would write it: no result, no delay, no retry."""
    args = [message.id, message.dispatch]
    embed = {"callbacks": None, "errbacks": None, "chain": None, "chord": None}
    body = json.dumps([args, {}, embed]).encode()
    id_ = message.transport_id
    return {
        "body": base64.b64encode(body).decode(),
        "content-encoding": "utf-8",
        "content-type": "application/json",
        "headers": {
            "lang": "py",
            "task": message.job,
            "id": id_,
            "root_id": id_,
            "parent_id": None,
            "group": None,
            "eta": None,
            "expires": None,
            "retries": 0,
            "timelimit": [None, None],
            "argsrepr": repr(tuple(args)),
            "kwargsrepr": "{}",
            "origin": PROJECT.name,
            "ignore_result": True,
        },
        "properties": {
            "correlation_id": id_,
            "reply_to": "",
            "delivery_mode": 2,
            "delivery_info": {"exchange": "", "routing_key": message.queue},
            "priority": _priority(message),
            "body_encoding": "base64",
            "delivery_tag": str(uuid.uuid4()),
        },
    }


def body_of(message: Message) -> bytes:
    """A message as it stands in Redis."""
    return json.dumps(envelope(message)).encode()


def message_in(data: Any, queue: str) -> Message | None:
    """The message of decoded data; None for anything that this package did not write."""
    try:
        args, _kwargs, _embed = json.loads(base64.b64decode(data["body"]))
        row_id, dispatch = args
        message = Message.received(data["headers"]["task"], row_id, dispatch)
        if message is None:
            return None
        high = data["properties"]["priority"] == HIGH
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    return replace(message, queue=queue, priority="high" if high else "normal")


def transport_id_in(body: bytes) -> str | None:
    """The transport id of a waiting message; None for what is no task message."""
    try:
        id_ = json.loads(body)["headers"]["id"]
        return id_ if isinstance(id_, str) else None
    except (ValueError, TypeError, KeyError, RecursionError):
        return None


class Broker(Server):
    """Publishes and looks up messages; safe to share between threads."""

    def publish(self, messages: Sequence[Message]) -> None:
        """Adds messages; all are in Redis when it returns, or Unavailable is raised."""
        with failures():
            for start in range(0, len(messages), 1000):
                pipe = self.client.pipeline(transaction=True)
                for message in messages[start : start + 1000]:
                    key = queue_key(message.queue, _priority(message))
                    pipe.lpush(key, body_of(message))
                pipe.execute()

    def known(self, messages: Sequence[Message]) -> set[str]:
        """Row ids of those messages that wait in Redis (a taken one does not wait).

        A copy in the buffer of a living worker does not count: its number has passed
        when it comes to a claim.
        """
        keys = {queue_key(m.queue, _priority(m)) for m in messages}
        waiting = {id_ for key in sorted(keys) for id_ in self._waiting(key)}
        return {m.id for m in messages if m.transport_id in waiting}

    def first(self, queues: Iterable[str]) -> str | None:
        """The transport id of the message that a worker of these queues takes next."""
        with failures():
            for key in keys_of(queues):
                body = cast("bytes | None", self._read(key, -1, -1, [None])[0])
                if body is not None:
                    return transport_id_in(body)
        return None

    def _waiting(self, key: str) -> Iterator[str]:
        start = 0
        while True:
            with failures():
                bodies = self._read(key, start, start + _SLICE - 1, [])
            for body in bodies:
                id_ = transport_id_in(body)
                if id_ is not None:
                    yield id_
            if len(bodies) < _SLICE:
                return
            # Two less: meanwhile messages may have been taken from the other end, and
            # pushed at this one they only come twice.
            start += _SLICE

    def _read(self, key: str, start: int, end: int, nothing: list[Any]) -> list[Any]:
        found = cast(list[Any], self.client.lrange(key, start, end))
        return found or nothing


def _priority(message: Message) -> int:
    return HIGH if message.priority == "high" else NORMAL
