"""QUEUE.md: its headings, its diagram, and that what it tells to type exists."""

import importlib
import re
import sys
from pathlib import Path

import pytest
import trees
from emit.projects import SPEC

from qgen.compile import compile

ROOT = Path(__file__).parents[2]
SPECS = [*sorted((ROOT / "examples" / "specs").glob("*.toml")), trees.SPEC]
TEXTS = {path.stem: path.read_text("utf-8") for path in SPECS}
HEADINGS = [
    *("BASIS", "WORKER PLAN", "JOB STATES", "RECOVERY AND DEAD-LETTER"),
    *("FAILURE CHECKLIST", "TEST CASES", "NEXT STEP"),
]
SYMPTOMS = {
    *("stuck in queued", "worker restarts with no error", "Redis connection resets"),
    *("duplicate runs", "long jobs run twice", "dead letters growing"),
    *("every job denied for budget", "job finished but no reply sent"),
    *("slow queue behind scheduled jobs", "Redis full"),
}
STATES = {"queued", "active", "held", "completed", "failed", "cancelled"}
MOVE = re.compile(r"    (\S+) --> (\S+) : ([\w, ]+)")


def page(text):
    done = compile(text.encode(), "queue.toml", "arq")
    assert done.model is not None, done.diagnostics
    return next(f.text for f in done.files if f.path.endswith("/QUEUE.md"))


def moves(text):
    """The diagram's moves with their reasons; every line of it is one."""
    (diagram,) = re.findall(r"```mermaid\nstateDiagram-v2\n(.*?)```", text, re.DOTALL)
    found = [MOVE.fullmatch(line) for line in diagram.splitlines()]
    assert all(found), diagram
    return {(each[1], each[2]): set(each[3].split(", ")) for each in found}


def rows(text, heading):
    """The rows of a heading's first table, as lists of cells."""
    part = text.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    table = part[part.index("|---") :].split("\n\n")[0].splitlines()[1:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table]


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_every_heading_and_every_symptom(text):
    plan = page(text)
    assert re.findall(r"^## (.*)$", plan, re.MULTILINE) == HEADINGS
    assert {cells[0] for cells in rows(plan, "FAILURE CHECKLIST")} >= SYMPTOMS


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_the_diagram_shows_the_states_of_this_spec(text):
    found = moves(page(text))
    states = {state for move in found for state in move} - {"[*]"}
    paid = "max_cost" in text
    assert states == (STATES if paid else STATES - {"held"})
    assert {after for before, after in found if before == "completed"} <= {"[*]"}
    assert ("failed", "active") not in found and ("queued", "completed") not in found
    reasons = set().union(*found.values())
    assert ("denied_cap" in reasons) == paid
    assert ("schedule" in reasons) == bool(re.search(r"^\[schedules", text, re.M))


def test_the_diagram_follows_the_spec():
    """One try: no retry.  Kept for ever: nothing is taken away."""
    assert "retry" in moves(page(SPEC))["active", "queued"]
    once = moves(page(f"{SPEC}\n[retries.default]\ntries = 1\n"))
    assert "retry" not in once["active", "queued"]
    assert ("failed", "[*]") in once
    kept = moves(page(f'{SPEC}\n[retention]\nfailed = "none"\n'))
    assert ("failed", "[*]") not in kept
    freed = f'{SPEC}\n[retention]\nfailed = "none"\n[env]\nKEEP = "retention.failed"\n'
    assert ("failed", "[*]") in moves(page(freed))


def test_what_a_deployment_may_override_is_told():
    plan = page(TEXTS["queue"])
    assert (
        "| `SUPPORT_CONCURRENCY` | `workers.main.concurrency` | a whole number" in plan
    )
    assert "| after 1000 jobs | `support.clients:open_clients`" in plan


@pytest.fixture
def parser(monkeypatch):
    """The command line's own parser, of the example's package."""
    monkeypatch.syspath_prepend(str(trees.SPEC.parent / "src"))
    before = set(sys.modules)
    module = importlib.import_module("support_queue.__main__")
    yield module.parser()
    for name in set(sys.modules) - before:
        if name.partition(".")[0] == "support_queue":
            del sys.modules[name]


def missing(parser, line):
    """The first word of a command that the command line does not know."""
    for number, word in enumerate(line.split()):
        choices = {}
        for action in parser._actions:
            choices |= action.choices if isinstance(action.choices, dict) else {}
        if word in choices:
            parser = choices[word]
        elif number == 0 or (
            word.startswith("-") and word not in parser._option_string_actions
        ):
            return word
    return None


def test_what_it_tells_to_type_exists(parser):
    """Each first check, and each command of the text, with its options."""
    plan = page(TEXTS["queue"])
    commands = [cells[2] for cells in rows(plan, "FAILURE CHECKLIST")]
    lines = [re.findall("`([^`]+)`", command)[0] for command in commands]
    lines += re.findall(r"`python -m support_queue ([^`]+)`", plan)
    lines += re.findall(r"`((?:dead-letters|caps|doctor|show)(?: [^`]*)?)`", plan)
    assert len(lines) > 20
    assert [missing(parser, line) for line in lines] == [None] * len(lines)
    assert missing(parser, "undo it") == "undo"
    assert missing(parser, "dead-letters replay X --twice") == "--twice"
