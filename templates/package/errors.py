"""What can go wrong, as types; every message says what to do."""

from __future__ import annotations

from datetime import timedelta


class QueueError(Exception):
    """Base of all errors this package raises on purpose."""


class Unavailable(QueueError):
    """The database or Redis does not answer now; the same call may succeed later."""


class SetupError(QueueError):
    """Something must be set up first: a variable, a table, a version."""


class PayloadRefused(QueueError, ValueError):
    """A payload that cannot be accepted; the message names the field's path."""


class KeyConflict(QueueError):
    """The same key was used before with another payload."""


class NotFound(QueueError):
    """No row has this id."""


class Refused(QueueError):
    """The record does not allow it; the message says why and what to do."""


class Defer(Exception):
    """Raise it from a handler to run the job again after ``delay``, using no attempt.

    ``delay`` is seconds or a timedelta.  A job may defer ``max_defers`` times.
    """

    def __init__(self, delay: float | timedelta) -> None:
        seconds = delay.total_seconds() if isinstance(delay, timedelta) else delay
        if not 0 <= seconds < 10**9:
            raise ValueError(f"Defer needs a delay of 0 or more seconds, not {delay!r}")
        super().__init__(f"deferred for {seconds} s")
        self.delay = float(seconds)
