"""What an exception means: try again and when, or never.  Pure functions."""

from __future__ import annotations

import builtins
import email.utils
import random
import re
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Final

from .codec import encode, text_form
from .definitions import Retry

# A provider may ask for any wait; more than this is not waited in one go.
LONGEST_RETRY_AFTER: Final = 86_400.0

_PACKAGE: Final = str(Path(__file__).parent)
_NUMBER = re.compile(r"0x[0-9a-fA-F]+|[0-9a-fA-F]{8}-[0-9a-fA-F-]{27}|\d+")


@dataclass(frozen=True, slots=True)
class Fault:
    """An exception as the record keeps it: JSON of it, its traceback, its cause."""

    error: str
    traceback: str
    type: str
    message: str
    frame: str

    def cause(self, job: str, reason: str) -> str:
        """Twelve hex digits, the same for every row of one fault.

        Made of job, reason, exception type, the message without numbers and ids, and
        the top frame of the user's code.
        """
        return cause_of(
            job, reason, self.type, _NUMBER.sub("#", self.message), self.frame
        )


def cause_of(*parts: str) -> str:
    """The id of a cause from what it is made of."""
    return sha256("\0".join(parts).encode()).hexdigest()[:12]


def fault_of(error: BaseException) -> Fault:
    """Describes an exception; cannot fail."""
    kind = type(error)
    name = kind.__qualname__
    if kind.__module__ not in ("builtins", "__main__"):
        name = f"{kind.__module__}.{name}"
    try:
        message = text_form(str(error))[:2000]
    except Exception:
        message = f"<unprintable {kind.__name__}>"
    frame = _users_frame(error)
    try:
        text = text_form("".join(traceback.format_exception(error)))[-20_000:]
    except Exception:
        text = ""
    shown = encode({"type": name, "message": message, "at": frame})
    return Fault(shown, text, name, message, frame)


def fault_named(type_: str, message: str) -> Fault:
    """A fault that no exception carries: a lost worker, a deadline."""
    shown = encode({"type": type_, "message": message, "at": ""})
    return Fault(shown, "", type_, message, "")


def wait(policy: Retry, used: int, retry_after: float | None = None) -> float:
    """Seconds to wait after ``used`` attempts (>= 1) before the next.

    ``retry_after`` is a lower bound, spread above it so that many jobs told the same
    instant do not come back in one; the jitter of a plain wait lies on both sides.
    """
    if policy.ladder:
        plain = policy.ladder[min(used, len(policy.ladder)) - 1]
    else:
        # factor ** n overflows long before it matters
        growth = policy.factor ** min(used - 1, 64)
        plain = min(policy.wait * growth, policy.max_wait)
    plain *= 1 + policy.jitter * random.uniform(-1, 1)
    if retry_after is None:
        return plain
    return max(plain, spread(retry_after, max(0.1, policy.jitter)))


def spread(seconds: float, share: float = 0.1) -> float:
    """At least so long, and up to a share longer, so that not all come back at once."""
    return seconds + random.uniform(0, share * max(seconds, 1.0))


def may_retry(policy: Retry, error: BaseException) -> bool:
    """Whether the policy allows another attempt after this exception.

    Looks through the cause chain; subclasses count; names are compared without
    importing anything.
    """
    names = set(_names(error))
    if policy.only:
        return bool(names.intersection(policy.only))
    return not names.intersection(policy.never)


def retry_after(error: BaseException) -> float | None:
    """Seconds an exception asks to wait: its ``retry_after``, or its response's header.

    Seconds, a timedelta, or an HTTP date.  What is not a time to come (a past date,
    a negative number, text) is None: the plain wait applies.
    """
    for link in _chain(error):
        value = getattr(link, "retry_after", None)
        if value is None:
            headers = getattr(getattr(link, "response", None), "headers", None)
            get = getattr(headers, "get", None)
            if callable(get):
                try:
                    value = get("retry-after") or get("Retry-After")
                except Exception:
                    value = None
        seconds = _seconds(value)
        if seconds is not None:
            return min(seconds, LONGEST_RETRY_AFTER)
    return None


def _seconds(value: object) -> float | None:
    total = getattr(value, "total_seconds", None)
    if callable(total):
        value = total()
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        seconds = float(value)
    except ValueError:
        seconds = _until(str(value))
    return seconds if 0 < seconds < float("inf") else None


def _until(text: str) -> float:
    try:
        instant = email.utils.parsedate_to_datetime(text)
    except (TypeError, ValueError, IndexError):
        return 0.0
    if instant.tzinfo is None:
        instant = instant.replace(tzinfo=UTC)
    return (instant - datetime.now(UTC)).total_seconds()


def _chain(error: BaseException) -> Iterator[BaseException]:
    link: BaseException | None = error
    seen: set[int] = set()
    while link is not None and id(link) not in seen:
        seen.add(id(link))
        yield link
        link = link.__cause__ or (
            None if link.__suppress_context__ else link.__context__
        )


def _names(error: BaseException) -> Iterator[str]:
    for link in _chain(error):
        yield from names_of(link)


def names_of(error: BaseException) -> Iterator[str]:
    """The names of an exception's class and its bases, as a spec writes them."""
    for kind in type(error).__mro__:
        if kind.__module__ == builtins.__name__:
            yield kind.__name__
        else:
            yield f"{kind.__module__}:{kind.__qualname__}"


def _users_frame(error: BaseException) -> str:
    """``file:function`` of the innermost frame that is the user's own code.

    No line number: an edit elsewhere in the file must not make a new cause.
    """
    found = ""
    for frame, _line in traceback.walk_tb(error.__traceback__):
        path = frame.f_code.co_filename
        if path.startswith(_PACKAGE):
            continue
        if "site-packages" in path or "/lib/python" in path.replace("\\", "/"):
            continue
        found = f"{Path(path).name}:{frame.f_code.co_name}"
    return found
