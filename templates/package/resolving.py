"""What a person says of a call that nobody could know: spent, or not spent."""

from __future__ import annotations

import uuid
from typing import Any

from . import statements
from .amounts import decimal, millionths
from .books import Books
from .codec import text_form
from .database import Row, Transaction
from .errors import NotFound, Refused
from .operations import as_id, transaction


def resolve(
    id_: str, *, step: str | None, spent: str | None, by: str, note: str
) -> dict[str, Any]:
    """Settles unknown calls of a job at what a person says; ``spent`` None = nothing.

    When none is left unknown the held job fails (``no_answer`` if a call was billed, else
    ``worker_lost``) and only an approved replay runs it again.  For a step that is not
    unknown any more the difference is booked as a correction.  Raises NotFound and
    Refused.
    """
    if not by.strip() or by.startswith("("):
        raise Refused("--by needs the name of a person")
    if not note.strip():
        raise Refused("--note needs a word on how it was found out")
    try:
        amount = None if spent is None else millionths(spent)
    except ValueError as error:
        raise Refused(f"--spent: {error}") from None
    with transaction() as tx:
        books = Books(tx, [as_id(id_)])
        if not books.rows:
            raise NotFound(f"no job has the id {id_}")
        (key,) = books.rows
        _decided(books, key, step, amount, text_form(by), text_form(note))
        books.flush()
        _write_down(tx, key, step, amount, by, note)
        after = tx.one(statements.ROW, id=key)
    assert after is not None
    return {"id": key, "cost": decimal(after["cost"]), "state": after["state"]}


def _decided(
    books: Books, id_: str, step: str | None, amount: int | None, by: str, note: str
) -> None:
    unknown = [c for c in books.calls[id_] if c["state"] == "unknown"]
    asked = [c for c in unknown if step in (None, c["step"])]
    if asked:
        if amount is not None and len(asked) > 1:
            steps = ", ".join(c["step"] for c in asked)
            raise Refused(f"several calls are unknown ({steps}): name one with --step")
        for call in asked:
            books.decide(call, amount, by, note)
        return
    known: list[Row] = [c for c in books.calls[id_] if c["step"] == step]
    if not known:
        what = (
            "call is unknown" if step is None else f"call of the step {step} is known"
        )
        raise NotFound(f"no {what}: see show {id_}")
    if known[-1]["state"] == "open":
        raise Refused(f"the call of the step {step} is being made: wait for its answer")
    books.correct(known[-1], amount or 0, by=by, note=note)


def _write_down(
    tx: Transaction, id_: str, step: str | None, amount: int | None, by: str, note: str
) -> None:
    said = "not spent" if amount is None else f"spent {decimal(amount)}"
    tx.run(
        statements.DECISION_INSERT,
        id=str(uuid.uuid4()),
        kind="resolve",
        subject=id_ if step is None else f"{id_} {text_form(step)}",
        by=text_form(by),
        note=f"{said}: {text_form(note)}",
        most=None,
    )
