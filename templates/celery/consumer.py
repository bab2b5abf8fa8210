"""Celery's consumer, which comes back from whatever becomes of its connection."""

from __future__ import annotations

import logging
import time
from typing import Any, Final

from celery.worker import consumer, state
from redis.exceptions import RedisError

log = logging.getLogger(__name__)

PAUSE: Final = 1.0  # seconds between two starts


class Consumer(consumer.Consumer):  # type: ignore[misc]
    """Celery's own ends its worker where an error is none that it expects."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.connection_errors = (*self.connection_errors, RedisError)

    def start(self) -> None:
        """Consumes until the worker stops."""
        while True:
            try:
                super().start()
                return
            except Exception as error:
                if self.blueprint.state in consumer.consumer.STOP_CONDITIONS:
                    raise
                log.warning("redis: %s", str(error).split("\n")[0])
                state.maybe_shutdown()
                time.sleep(PAUSE)

    def ensure_connected(self, conn: Any) -> Any:
        """Celery waits longer from time to time, up to half a minute."""

        def failed(error: Exception, interval: float) -> None:
            log.warning("redis: %s", str(error).split("\n")[0])

        conn = conn.ensure_connection(
            failed,
            None,
            interval_start=PAUSE,
            interval_step=PAUSE,
            interval_max=5 * PAUSE,
            callback=state.maybe_shutdown,
        )
        self.first_connection_attempt = False
        return conn
