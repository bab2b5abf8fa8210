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


class CallRefused(QueueError):
    """A paid call that is not made: the message says why and what to write."""


class AttemptEnds(BaseException):
    """Ends the attempt from inside a paid call.

    Not an Exception: a handler that catches every Exception must not go on as if the
    call had merely failed.
    """


class AttemptOver(AttemptEnds):
    """The attempt may open no further call: cancelled, past its deadline, or dead."""


class BillUnknown(AttemptEnds):
    """The call may have been billed, and nothing proves it: the job is held."""


class NoAnswer(AttemptEnds):
    """The call was billed, but no answer of it could be kept."""


class Throttled(AttemptEnds):
    """The provider said 429: the agent's gate is closed for ``delay`` seconds."""

    def __init__(self, message: str, delay: float) -> None:
        super().__init__(message)
        self.delay = delay
