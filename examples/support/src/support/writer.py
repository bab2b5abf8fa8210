"""A stand-in for the provider of a language model: offline, and alike every time.

It is billed by the word.  Like many real ones it knows its keys: a request that comes
again with the same key is answered again and billed once, which the spec states with
``provider_keys``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Final

PRICE: Final = Decimal("0.0005")  # of a word
GREETINGS: Final = {
    "plain": "Hello,",
    "warm": "Hello, and thank you for writing to us!",
}


@dataclass(frozen=True)
class Answer:
    """A text and the words that are billed."""

    text: str
    words: int


class Client:
    """What a real one would keep open for all jobs of a worker: connections, a token."""

    def __init__(self) -> None:
        self.is_open = True

    def complete(
        self, tone: str, topics: Sequence[str], due: datetime | None, *, key: str
    ) -> Answer:
        """A first answer; ``key`` would be sent along as its idempotency key."""
        if not self.is_open:
            raise ConnectionRefusedError("the client is closed")
        about = " and ".join(topics) or "your question"
        lines = [GREETINGS[tone], f"We are looking into {about}."]
        if due is not None:
            lines.append(f"You will hear from us by {due:%d %B %Y}.")
        text = "\n".join(lines)
        return Answer(text, len(text.split()))

    async def close(self) -> None:
        """Nothing is sent any more."""
        self.is_open = False


def price(answer: Answer) -> Decimal:
    """What the provider's bill will say."""
    return PRICE * answer.words
