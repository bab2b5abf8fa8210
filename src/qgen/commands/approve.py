"""``qgen approve AGENT --by OWNER``: what the spec lets it spend is entered as approved."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

from .. import approvals
from ..emit.private import Unwritable
from ..model import Agent, Model
from ..spec.messages import shown
from ..spec.suggest import nearest
from . import say, work
from .stop import Stop


def run(name: str, by: str, note: str, spec: str) -> int:
    """Enter an agent's caps as the spec has them; 1 unless its owner asks for it.

    Writes the approvals and nothing else: the build is the next step.
    """
    job = work.work(spec, None)
    if job.compilation.model is None:
        return say.Output().end(job.compilation.diagnostics).code
    try:
        with job.private.alone(lambda: print("qgen: waiting for another qgen build")):
            if not job.is_current():
                job = work.work(spec, None)
            model = job.compilation.model
            if model is None:
                return say.Output().end(job.compilation.diagnostics).code
            agent = _agent(model, name)
            if by != agent.owner:
                print(
                    f"qgen: only the owner of {name} may approve, and that is"
                    f" {shown(agent.owner)}",
                    file=sys.stderr,
                )
                return 1
            return _approve(job, model, agent, by, note)
    except Unwritable as error:
        raise Stop(str(error)) from None
    except BrokenPipeError:
        raise
    except OSError as error:
        raise Stop(f"cannot write {approvals.NAME}: {error.strerror}") from None


def _approve(job: work.Work, model: Model, agent: Agent, by: str, note: str) -> int:
    book = job.compilation.book
    entry = book.entries.get(agent.name)
    same = entry is not None and entry.limits == approvals.limits(model, agent)
    if same and entry is not None and entry.by != approvals.BUILD:
        print(f"{agent.name}: nothing to approve, the spec and the approvals agree")
        return 0
    found = job.tree.look(approvals.NAME)
    if found.refused:
        raise Stop(f"{approvals.NAME} {found.refused}")
    entries = approvals.approved(model, book, agent, by, work.today(), note)
    _write(job, entries)
    if same:
        print(f"{agent.name}: approved as a build has entered it")
    for key, was, now in _changes(book.entries, entries, agent.name):
        print(f"{agent.name}: {key} {was} -> {now}")
    print(f"Entered in {approvals.NAME}. Next: qgen build, and commit both.")
    return 0


def _agent(model: Model, name: str) -> Agent:
    for agent in model.agents:
        if agent.name == name:
            return agent
    near = nearest(name, [agent.name for agent in model.agents], 0.6)
    known = ", ".join(agent.name for agent in model.agents) or "none"
    hint = f"did you mean {near}?" if near else f"the agents are: {known}"
    raise Stop(f"there is no agent {name}; {hint}")


def _write(job: work.Work, entries: Mapping[str, approvals.Entry]) -> None:
    try:
        data = approvals.text_of(entries).encode()
    except UnicodeEncodeError:
        raise Stop("write --note as text that is UTF-8") from None
    with job.private.stage() as stage:
        (stage / "approvals").write_bytes(data)
        os.replace(stage / "approvals", job.tree.at(approvals.NAME))


def _changes(
    before: Mapping[str, approvals.Entry],
    after: Mapping[str, approvals.Entry],
    name: str,
) -> list[tuple[str, str, str]]:
    """Each value that is another now: its key, what it was, what it is."""
    old = approvals.values(before[name].limits) if name in before else {}
    new = approvals.values(after[name].limits)
    return [
        (key, old.get(key, "none"), new.get(key, "none"))
        for key in sorted({*old, *new})
        if old.get(key) != new.get(key)
    ]
