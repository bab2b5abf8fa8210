"""A provider of paid calls for the stubs: it bills before it answers.

The bill is a file, so it survives whatever is killed.  With keys, a key is billed once.
"""

from __future__ import annotations

import json
import os
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import Any

STEP = "ask"


@dataclass(frozen=True)
class Charge:
    """A line of the bill."""

    job: str
    key: str
    cost: str


class Refusal(Exception):
    """An answer with an HTTP status, as an SDK raises it; nothing was billed."""

    def __init__(self, status: int) -> None:
        super().__init__(f"status {status}")
        self.status_code = status
        self.retry_after = 1.0


class Provider:
    """The bill in a folder."""

    def __init__(self, folder: Path, keyed: bool = False) -> None:
        self._bill = folder / "bill"
        self._keyed = keyed

    def charges(self, job: str | None = None) -> list[Charge]:
        """The charges so far, of one job or of all, in order."""
        try:
            lines = self._bill.read_text("utf-8").splitlines()
        except FileNotFoundError:
            return []
        found = [Charge(**json.loads(line)) for line in lines]
        return [charge for charge in found if job in (None, charge.job)]

    def ask(self, job: str, key: str, cost: str) -> dict[str, str]:
        """Bills a request, unless it knows its key, and answers."""
        known = {charge.key for charge in self.charges()} if self._keyed else set()
        if key not in known:
            line = json.dumps(vars(Charge(job, key, cost))) + "\n"
            with open(self._bill, "ab", buffering=0) as file:
                file.write(line.encode())
        return {"cost": cost, "text": f"for {job}"}


async def buy(
    folder: Path,
    job: Any,
    cost: str,
    *,
    then: str = "",
    keyed: bool = False,
    whole: bool = False,
) -> Any:
    """What a stub does with the order ``buy``: one call, and ``then`` in the first attempt.

    ``whole``: the attempt is the call.  ``die``: the process is killed when the provider
    has billed.  ``lose``: its answer is lost.  ``hide``: the same, and the handler
    returns all the same.  ``unkept``: nothing can be kept of it.  A number: the status
    of an answer that is not billed.
    """
    provider = Provider(folder, keyed)
    then = then if job.attempt == 1 else ""

    def call(key: str) -> dict[str, str]:
        if then.isdigit():
            raise Refusal(int(then))
        answer = provider.ask(job.id, key, cost)
        if then == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        if then in ("lose", "hide"):
            raise ConnectionResetError("the answer was lost")
        return answer

    def keep(answer: dict[str, str]) -> str:
        if then == "unkept":
            raise ValueError("nothing can be kept")
        return answer["text"]

    if whole:
        answer = call(f"{job.id}/{job.attempt}")
        job.charge(answer["cost"])
        return answer["text"]
    try:
        return await job.paid_call(
            STEP, call, cost=lambda answer: answer["cost"], keep=keep
        )
    except Exception:
        if then != "hide":
            raise
        return "as if nothing had happened"
