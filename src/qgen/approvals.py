"""``queue.approvals.toml``: what each agent may spend at most, and who approved it.

It is committed beside the spec.  ``qgen build`` enters an agent that is new to it; what
would let an agent spend more than its entry says stops ``build`` and ``check`` until
``qgen approve``; less needs nothing.  One sorted line a value, so that a diff shows what
was raised and two branches are joined by hand.  It is read as somebody's text: what is
not understood is an error, since an agent whose entry was skipped would be entered anew.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any, Final

from .diagnostics.catalogue import approved as codes
from .diagnostics.value import Diagnostic, Related
from .model import Agent, Model
from .resolve.units import decimal, millionths
from .spec.load import read as read_toml
from .spec.messages import shown
from .spec.source import Source
from .spec.spans import Path
from .spec.words import MONEY

NAME: Final = "queue.approvals.toml"
HEADER: Final = """\
# What each agent may spend at most, and who approved it. Commit this file.
# qgen build enters a new agent; a raise is entered by: qgen approve AGENT --by OWNER
"""
PERIODS: Final = ("hour", "day", "week", "month")
# Amounts by key, as the file writes them; the rest are texts, and the date.
AMOUNTS: Final = (
    *(f"cap.{period}" for period in (*PERIODS, "job")),
    *(f"cap_each.{period}" for period in PERIODS),
)
TEXTS: Final = ("approved_by", "cap_each.by", "note", "on_unknown", "unit")
NEEDED: Final = ("approved_by", "approved_on", "on_unknown", "unit")
# Who enters an agent that nobody has approved yet, and why.
BUILD: Final = "qgen build"
NEW: Final = "a new agent"


@dataclass(frozen=True, slots=True)
class Limits:
    """All of an agent that an approval is about.

    ``amounts`` are millionths by their key in the file (``cap.day``), only those that
    are given; ``unit`` is what they count.
    """

    amounts: Mapping[str, int]
    each_by: str | None
    on_unknown: str
    unit: str

    @property
    def is_capped(self) -> bool:
        """False when all is denied: no cap of the agent means nothing."""
        return any(key.startswith("cap.") for key in self.amounts)


@dataclass(frozen=True, slots=True)
class Entry:
    """What was approved, by whom, when, and why (it may be empty)."""

    limits: Limits
    by: str
    on: date
    note: str = ""


@dataclass(frozen=True, slots=True)
class Raise:
    """One way in which a spec lets an agent spend more than was approved.

    ``key`` is its key in the file; ``what`` says it in words.
    """

    agent: Agent
    key: str
    what: str


@dataclass(frozen=True, slots=True)
class Book:
    """The file: its entries, and its text as a source of places."""

    entries: Mapping[str, Entry]
    source: Source | None = None


def limits(model: Model, agent: Agent) -> Limits:
    """What the spec asks for."""
    amounts = {f"cap.{period}": amount for period, amount in agent.caps}
    if agent.job_cap is not None:
        amounts["cap.job"] = agent.job_cap
    amounts |= {f"cap_each.{period}": amount for period, amount in agent.each_caps}
    return Limits(amounts, agent.each_by, agent.on_unknown, model.spend.unit)


# --- what stops -------------------------------------------------------------------


def unlisted(model: Model, book: Book) -> list[Agent]:
    """The agents that a build enters."""
    return [agent for agent in model.agents if agent.name not in book.entries]


def raises(model: Model, book: Book) -> Iterator[Raise]:
    """All that needs an owner's word, agent by agent."""
    for agent in model.agents:
        entry = book.entries.get(agent.name)
        if entry is not None:
            for key, what in raised(limits(model, agent), entry.limits):
                yield Raise(agent, key, what)


def raised(wanted: Limits, approved: Limits) -> Iterator[tuple[str, str]]:
    """The keys by which ``wanted`` lets more be spent than ``approved``, in words.

    A cap that is left out lets everything be spent, unless the agent has none at all:
    then nothing.  Amounts of another unit cannot be compared, so it counts as a raise.
    """
    if wanted.on_unknown == "retry" and approved.on_unknown != "retry":
        yield "on_unknown", '`on_unknown` is "retry", where "hold" is approved'
    if not wanted.is_capped:
        return
    if wanted.unit != approved.unit:
        was, now = shown(approved.unit), shown(wanted.unit)
        yield "unit", f"the unit is {now}, where amounts of {was} are approved"
    for key in AMOUNTS:
        now_, was_ = wanted.amounts.get(key), approved.amounts.get(key)
        if not approved.is_capped and key.startswith("cap."):
            was_ = 0
            if now_ is None:
                continue
        if was_ is None or (now_ is not None and now_ <= was_):
            continue
        asked = "left out" if now_ is None else decimal(now_)
        yield key, f"`{key}` is {asked}, where {decimal(was_)} is approved"
    if approved.each_by is not None and wanted.each_by not in (None, approved.each_by):
        by, was = shown(wanted.each_by), shown(approved.each_by)
        yield "cap_each.by", f"`cap_each.by` is {by}, where {was} is approved"


def diagnostics(
    found: Iterable[Raise], spec: Source, book: Book
) -> Iterator[Diagnostic]:
    """Each raise at its key in the spec, with its line in the file."""
    for each in found:
        keys = tuple(each.key.split("."))
        name = each.agent.name
        at: Path = ("spend", "unit") if each.key == "unit" else ("agents", name, *keys)
        also: list[Related] = []
        if book.source is not None:
            for path in (("agents", name, *keys), ("agents", name)):
                if path in book.source.spans:
                    place = book.source.locate(path, "key")
                    also = [Related(place, "what is approved")]
                    break
        message = f"{name}: {each.what}."
        # An owner may hold anything; the message stays one line.
        help_ = f"run qgen approve {name} --by {shown(each.agent.owner)}, or lower it"
        yield spec.problem(codes.UNAPPROVED, spec.locate(at), message, help_, also)


# --- the file ---------------------------------------------------------------------


def read(data: bytes, file: str) -> Book | tuple[Diagnostic, ...]:
    """The entries of a file (none of an empty one), or what is wrong with its text."""
    source = read_toml(data, file)
    if isinstance(source, tuple):
        return source
    found: list[Diagnostic] = []
    entries: dict[str, Entry] = {}
    agents = source.data.get("agents", {})
    others = [(key,) for key in source.data if key != "agents"]
    if not isinstance(agents, dict):
        agents, others = {}, [*others, ("agents",)]
    for path in others:
        found.append(_problem(source, path, "is nothing that qgen enters here"))
    for name, table in agents.items():
        entry, problems = _entry(source, name, table)
        found += problems
        if entry is not None:
            entries[name] = entry
    return tuple(found) if found else Book(entries, source)


def _entry(
    source: Source, name: str, table: object
) -> tuple[Entry | None, list[Diagnostic]]:
    at: Path = ("agents", name)
    if not isinstance(table, dict):
        return None, [_problem(source, at, "is no entry of an agent")]
    values = dict(_flat(table))
    found = []
    for key, value in values.items():
        wrong = _wrong(key, value)
        if wrong:
            found.append(_problem(source, (*at, *key.split(".")), wrong))
    missing = [key for key in NEEDED if key not in values]
    if missing:
        found.append(_problem(source, at, f"lacks `{missing[0]}`"))
    if found:
        return None, found
    amounts = {key: millionths(values[key]) for key in AMOUNTS if key in values}
    each_by, unit = values.get("cap_each.by"), values["unit"]
    limits_ = Limits(amounts, each_by, values["on_unknown"], unit)
    note = values.get("note", "")
    return Entry(limits_, values["approved_by"], values["approved_on"], note), []


def _flat(table: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for key, value in table.items():
        if key in ("cap", "cap_each") and isinstance(value, dict):
            yield from ((f"{key}.{inner}", each) for inner, each in value.items())
        else:
            yield key, value


def _wrong(key: str, value: object) -> str:
    """What is wrong with a value; empty when it is one of an entry."""
    if key in AMOUNTS:
        sound = isinstance(value, str) and MONEY.regex.search(value)
        return "" if sound else "is not an amount of money in quotes"
    if key == "on_unknown":
        return "" if value in ("hold", "retry") else 'is neither "hold" nor "retry"'
    if key in TEXTS:
        return "" if isinstance(value, str) else "is not a text in quotes"
    if key == "approved_on":
        return "" if type(value) is date else "is not a date like 2026-01-31"
    return "is nothing that qgen enters here"


def _problem(source: Source, path: Path, what: str) -> Diagnostic:
    name = shown(".".join(map(str, path)))
    message = f"{name} {what}."
    help_ = f"mend it, or take {NAME} back from the version that was committed"
    return source.problem(codes.UNREADABLE, source.locate(path, "key"), message, help_)


def text_of(entries: Mapping[str, Entry]) -> str:
    """The whole file: agents sorted, then their values, a line each."""
    parts = [HEADER]
    for name in sorted(entries):
        lines = "".join(f"{line}\n" for line in sorted(_lines(entries[name])))
        parts.append(f"\n[agents.{_key(name)}]\n{lines}")
    return "".join(parts)


def values(limits: Limits) -> dict[str, str]:
    """The limits as the file holds them, by key."""
    found = {key: decimal(amount) for key, amount in limits.amounts.items()}
    if limits.each_by is not None:
        found["cap_each.by"] = limits.each_by
    return {**found, "on_unknown": limits.on_unknown, "unit": limits.unit}


def _lines(entry: Entry) -> Iterator[str]:
    yield f"approved_by = {_quoted(entry.by)}"
    yield f"approved_on = {entry.on.isoformat()}"
    if entry.note:
        yield f"note = {_quoted(entry.note)}"
    for key, value in values(entry.limits).items():
        yield f"{key} = {_quoted(value)}"


def _key(name: str) -> str:
    """An agent's name; one entered by hand may be no bare key."""
    bare = name.isascii() and name.replace("_", "").replace("-", "").isalnum()
    return name if bare else _quoted(name)


def _quoted(text: str) -> str:
    """Any text as a TOML string on one line."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def entered(model: Model, book: Book, on: date) -> Mapping[str, Entry]:
    """The entries with those of the agents that are new."""
    new = {
        agent.name: Entry(limits(model, agent), BUILD, on, NEW)
        for agent in unlisted(model, book)
    }
    return {**book.entries, **new}


def approved(
    model: Model, book: Book, agent: Agent, by: str, on: date, note: str
) -> Mapping[str, Entry]:
    """The entries with this agent's limits approved as the spec has them."""
    return {**book.entries, agent.name: Entry(limits(model, agent), by, on, note)}
