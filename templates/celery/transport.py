"""Kombu's Redis transport, which nothing that stands in Redis can end or fool.

Three things differ.  Queues are emptied in the worker's order of preference, high rows
first.  What is no message of this package is dropped with a warning.  An error that
Redis answers (read-only, full, a key of another type) is waited out on the connection.
"""

from __future__ import annotations

import logging
import time
from dataclasses import replace
from queue import Empty
from typing import Any, Final

from kombu.transport import redis
from redis.exceptions import RedisError, ResponseError

from . import catalog
from .broker import envelope, keys_of, message_in
from .registry import PROJECT

log = logging.getLogger(__name__)

PAUSE: Final = 0.5  # seconds until Redis is asked again after it answered an error

# A task of this name takes messages of jobs that this code does not know: the claim
# puts their rows back for a worker that does.
STRANGER: Final = f"{PROJECT.name}.unknown_job"


class Channel(redis.Channel):  # type: ignore[misc]
    """Takes messages: see above."""

    def _update_queue_cycle(self) -> None:
        # What kombu knows of them is a set; the order is that in which they were asked for.
        self._queue_cycle.update(list(dict.fromkeys(self._active_queues)))

    def _brpop_start(self, timeout: int = 1) -> None:
        queues = self._queue_cycle.consume(len(self.active_queues))
        if queues:
            self._in_poll = self.client.connection
            self._brpop_sent_at = time.monotonic()
            self.client.connection.send_command("BRPOP", *keys_of(queues), timeout)

    def _brpop_read(self, **options: Any) -> Any:
        try:
            return super()._brpop_read(**options)
        except ResponseError as error:
            log.warning("redis: %s", error)
            if "WRONGTYPE" in str(error):
                self._drop_what_is_no_list()
            time.sleep(PAUSE)
        except (Empty, RedisError, OSError):
            raise
        except Exception:
            _dropped("celery's lists")
        raise Empty

    def _drop_what_is_no_list(self) -> None:
        """Nobody could publish under such a key either."""
        client = self.connection_of_its_own()
        for key in keys_of(self._active_queues):
            if client.type(key) not in (b"list", b"none"):
                client.delete(key)

    def connection_of_its_own(self) -> Any:
        """A client without kombu's prefix, on this channel's pool."""
        return redis.redis.Redis(connection_pool=self.pool)


class Transport(redis.Transport):  # type: ignore[misc]
    """``broker_transport`` of the package."""

    Channel = Channel

    def _deliver(self, message: Any, queue: str) -> None:
        if queue in catalog.QUEUE_NAMES:
            ours = message_in(message, queue)
            if ours is None:
                _dropped(queue)
                return
            if ours.job not in catalog.BY_NAME:
                ours = replace(ours, job=STRANGER)
            # Written anew: whatever else stood in it reaches nobody.
            message = envelope(ours)
        super()._deliver(message, queue)


def _dropped(where: str) -> None:
    log.warning("%s: an entry in Redis that is not ours was dropped", where)
