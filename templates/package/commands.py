"""The commands: from parsed options to an ``Answer``, in JSON and for people."""

from __future__ import annotations

import json
import sys
from argparse import Namespace
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from pydantic import BaseModel, ValidationError

from . import catalog, client, dead_letters, health, migrate, operations
from .codec import describe_invalid, encode
from .definitions import Job
from .errors import PayloadRefused
from .views import table

STATES: Final = ("queued", "active", "held", "completed", "failed", "cancelled")


class Answer(NamedTuple):
    """What a command found: a JSON document, the same for people, the exit code."""

    document: Any
    text: str
    exit_code: int = 0


class Malformed(Exception):
    """A payload that is not JSON."""


def migrate_tables(options: Namespace) -> Answer:
    """``migrate``"""
    if options.sql:
        return Answer({"sql": migrate.sql()}, migrate.sql())
    done = migrate.upgrade()
    applied = ", ".join(done["applied"]) or "nothing new"
    return Answer(done, f"tables at {done['to']}: {applied}")


def run_worker(options: Namespace) -> Answer:
    """``worker``"""
    from . import worker  # only here: it imports the backend's own worker

    return Answer(None, "", worker.run(options.name, options.burst))


def enqueue_job(options: Namespace) -> Answer:
    """``enqueue``"""
    job = catalog.job_named(options.job)
    text = options.payload
    if text == "-":
        try:
            text = sys.stdin.read()
        except UnicodeDecodeError:
            raise Malformed("the payload is not JSON: it is not UTF-8") from None
    accepted = client.enqueue(
        _payload(job, text),
        key=options.key,
        delay=options.delay,
        priority=options.priority,
    )
    how = "accepted" if accepted.created else "known already"
    return Answer(accepted._asdict(), f"{accepted.id} {how}, {accepted.state}")


def _payload(job: Job, text: str) -> BaseModel:
    """The valid payload, Malformed, or PayloadRefused with the path of the field."""
    try:
        json.loads(text)
        return job.payload.model_validate_json(text)
    except ValidationError as error:
        said = describe_invalid(error)
        if any(part["type"] == "json_invalid" for part in error.errors()):
            raise Malformed(f"the payload is not JSON: {said}") from None
        raise PayloadRefused(f"{job.payload.__name__}: {said}") from None
    except RecursionError:
        raise Malformed("the payload is not JSON that can be read: too deep") from None
    except ValueError as error:
        raise Malformed(f"the payload is not JSON: {error}") from None


def show_job(options: Namespace) -> Answer:
    """``show``"""
    row = operations.show(options.id)
    lines = [
        f"{name:<20} {value if isinstance(value, str) else encode(value)}"
        for name, value in row.items()
        if value not in (None, []) and name not in ("attempts", "paid_calls")
    ]
    if row["attempts"]:
        columns = ("attempt", "outcome", "started_at", "ended_at", "worker", "error")
        lines += ["", table(columns, row["attempts"])]
    return Answer(row, "\n".join(lines))


def list_jobs(options: Namespace) -> Answer:
    """``list``"""
    rows = operations.listed(
        state=options.state, job=options.job, queue=options.queue, limit=options.limit
    )
    columns = ("id", "job", "queue", "state", "reason", "attempt", "tries", "run_at")
    return Answer({"jobs": rows}, table(columns, rows))


def cancel_jobs(options: Namespace) -> Answer:
    """``cancel``: 1 if an id was not found; what has ended already is no failure."""
    answers = operations.cancel(options.ids, options.by)
    rows = [
        {"id": id_, "answer": answer.replace("_", " ")}
        for answer, ids in answers.items()
        for id_ in ids
    ]
    return Answer(
        answers, table(("id", "answer"), rows), 1 if answers["not_found"] else 0
    )


def recover(_options: Namespace) -> Answer:
    """``recover``: 1 if a step or a row of the sweep failed."""
    counts = operations.recover()
    return Answer(counts, table(tuple(counts), [counts]), 1 if counts["errors"] else 0)


def status(_options: Namespace) -> Answer:
    """``status``"""
    now = operations.status()
    workers = ("name", "host", "pid", "queues", "active", "slots", "last_seen", "id")
    columns = ("queue", "queued", "active", "oldest_due_s", "workers")
    parts = [
        table(tuple(now["states"]), [now["states"]]),
        table(columns, _named("queue", now["queues"])),
        table(workers, now["workers"]) if now["workers"] else "no live worker",
    ]
    if now["removed_jobs"]:
        rows = [
            {"removed job": k, "waiting": n} for k, n in now["removed_jobs"].items()
        ]
        parts.append(table(("removed job", "waiting"), rows))
    return Answer(now, "\n\n".join(parts))


def _named(column: str, rows: Mapping[str, Mapping[str, Any]]) -> list[dict[str, Any]]:
    return [{column: name, **row} for name, row in rows.items()]


def check_health(_options: Namespace) -> Answer:
    """``health``: 1 with reasons."""
    found = health.health()
    reasons = found["reasons"]
    text = "\n".join(reasons) if reasons else "healthy"
    return Answer(found, text, 1 if reasons else 0)


def list_causes(_options: Namespace) -> Answer:
    """``dead-letters``"""
    causes = dead_letters.causes()
    rows = [
        cause
        | {
            "approved": cause["approved"] and f"{cause['approved']['left']} left",
            "error": _message(cause["error"]),
        }
        for cause in causes
    ]
    columns = (
        "cause",
        "job",
        "state",
        "reason",
        "count",
        "newest",
        "approved",
        "error",
    )
    return Answer({"causes": causes}, table(columns, rows))


def _message(error: Any) -> str:
    if isinstance(error, dict):
        return f"{error.get('type')}: {error.get('message')}"
    return "" if error is None else str(error)


def approve_cause(options: Namespace) -> Answer:
    """``dead-letters approve``"""
    done = dead_letters.approve(
        options.cause, by=options.by, note=options.note, limit=options.limit
    )
    return Answer(done, f"{done['limit']} replays of {done['cause']} approved")


def replay_cause(options: Namespace) -> Answer:
    """``dead-letters replay``: 1 if any row was refused."""
    done = dead_letters.replay(options.cause, by=options.by, limit=options.limit)
    rows = [{"id": id_, "answer": "replayed"} for id_ in done["replayed"]]
    rows += [{"id": row["id"], "answer": row["why"]} for row in done["refused"]]
    return Answer(done, table(("id", "answer"), rows), 1 if done["refused"] else 0)
