"""What a person is told of a row that waits, though no claim has ever refused it."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

import pytest
from engine.limits.desk import Desk

NOTHING = Namespace(state=None, job=None, queue=None, limit=50)


def told(desk: Desk, id_: str) -> tuple[str | None, str | None]:
    """The row's reason and words; `list` and `show` say the same."""
    (row,) = [r for r in desk.part("operations").listed() if r["id"] == id_]
    shown = desk.part("operations").show(id_)
    # Of an instant that is reckoned from now the last millisecond may differ.
    said = [(each["reason"], (each["waits_for"] or "")[:-5]) for each in (shown, row)]
    assert said[0] == said[1]
    return row["reason"], row["waits_for"]


def at_claim(desk: Desk, id_: str) -> Any:
    """What a claim of the row would be refused with."""
    admission, job = desk.part("admission"), desk.engine.job["paid"]
    row = desk.row(id_)
    wanted = admission.Candidate(row, job, job.payload())
    with desk.engine.transaction() as tx:
        return admission.admit(tx, [wanted]).waits[id_]


def test_what_a_full_cap_holds_back_says_which(desk: Desk) -> None:
    """Whose, of which window, until when, and who lowered it: as a claim would say."""
    first, second = desk.put("paid", 2)
    desk.part("caps").lower("writer", "day", "0", by="Ada")
    assert desk.fill() == []
    assert desk.row(first)["reason"] is None
    (window,) = desk.part("caps").agents()["writer"]["windows"]
    words = (
        "the day's cap of writer, lowered by a person, is 0.00; 0.00 is spent or "
        "unknown, and this attempt needs 0.01; the day ends at " + window["resets_at"]
    )
    assert told(desk, first) == told(desk, second) == ("budget", words)
    assert at_claim(desk, first).message == words
    desk.claim(desk.marked([first]))
    assert desk.row(first)["reason"] == "budget"
    assert told(desk, first) == ("budget", words)
    assert desk.part("operations").status()["held_back"] == [
        {"job": "paid", "waiting": 2, "reason": "budget", "waits_for": words}
    ]
    looking = desk.part("looking")
    for text in (looking.list_jobs(NOTHING).text, looking.status(NOTHING).text):
        assert text.count(f"budget: {words}") == 1


def test_room_that_others_have_reserved(desk: Desk) -> None:
    """It may come back at any moment, so no instant is named."""
    desk.part("caps").lower("writer", "day", "0.01", by="Ada")
    first, second = desk.put("paid", 2)
    assert first in desk.claim(desk.marked([first])).admitted
    reason, words = told(desk, second)
    assert (reason, words) == ("budget", at_claim(desk, second).message)
    assert words is not None and words.endswith(
        "0.00 is spent or unknown, and this attempt needs 0.01, beside 0.01 that "
        "running jobs have reserved"
    )


@pytest.mark.parametrize("how", ["paused", "throttled"])
def test_a_closed_gate(desk: Desk, how: str) -> None:
    (id_,) = desk.put("paid")
    if how == "paused":
        desk.part("pauses").pause("writer", "Ada")
        words = "writer is paused: `resume writer` lets it go on"
    else:
        with desk.engine.transaction() as tx:
            closing = desk.part("money_statements").GATES_CLOSE
            tx.run(closing, batch='[{"key": "agent:writer", "delay": 60000}]')
        words = "the provider of writer said 429: its gate is closed until 20"
    assert desk.fill() == []
    reason, said = told(desk, id_)
    assert reason == how and said is not None and said.startswith(words)
    (job,) = desk.part("operations").status()["held_back"]
    assert (job["job"], job["reason"]) == ("paid", how)


def test_a_queue_a_limit_and_a_rate(desk: Desk) -> None:
    """What a person shut, what runs already, what has started of late."""
    (shut,) = desk.put("free", queue="wide")
    desk.part("pauses").pause("wide", "Ada")
    assert told(desk, shut) == (
        "paused",
        "wide is paused: `resume wide` lets it go on",
    )
    ids = [
        *desk.put("alone", 2),
        *desk.put("keyed", 3, who="secret"),
        *desk.put("free", 3, queue="narrow"),
    ]
    running = [ids[0], *ids[2:4], *ids[5:7]]
    assert set(desk.claim(desk.marked(running)).admitted) == set(running)
    assert [told(desk, ids[n]) for n in (1, 4, 7)] == [
        ("busy", "1 of alone run, which is its max_running"),
        ("busy", "2 of keyed with this who run, which is its max_running"),
        ("busy", "2 of the queue narrow run, which is its max_running"),
    ]
    started = desk.put("paid", 3)
    desk.claim(desk.marked(started[:2]))
    reason, words = told(desk, started[2])
    assert reason == "rate" and words is not None
    assert words.startswith("the agent writer starts at most 2 in 600 s; the next may")


def test_what_waits_for_its_time_or_its_turn_says_no_more(desk: Desk) -> None:
    (later,) = desk.put("paid", delay=3600)
    (turn,) = desk.put("free")
    desk.part("caps").lower("writer", "day", "0", by="Ada")
    assert told(desk, later) == ("scheduled", None)
    assert told(desk, turn) == (None, None)


def test_a_brake_says_who_when_and_why(desk: Desk) -> None:
    """In JSON and for people; it is told from a cap of the spec."""
    caps, shown = desk.part("caps"), desk.part("spending").shown
    (window,) = caps.agents()["writer"]["windows"]
    assert (window["cap"], window["spec"], window["brake"]) == (
        "1000.00",
        "1000.00",
        None,
    )
    now = caps.lower("writer", "day", "5", by="Ada", note="a loop")
    (window,) = now["writer"]["windows"]
    at = window["brake"].pop("decided_at")
    assert (window["cap"], window["spec"], window["brake"]) == (
        "5.00",
        "1000.00",
        {"amount": "5.00", "unreadable": None, "by": "Ada", "note": "a loop"},
    )
    line = f"writer day: lowered from 1000.00 to 5.00 by Ada at {at}: a loop"
    assert shown(caps.agents()).splitlines()[-1] == line
    (decided,) = desk.engine.package.sql("SELECT * FROM jobs_decisions")
    assert (decided["by"], decided["note"]) == ("Ada", "5.00: a loop")


def test_nothing_to_restore_is_as_nothing_to_resume(desk: Desk) -> None:
    """What is wanted is so: done, and no decision is noted.  A name that is none is not."""
    caps, pauses = desk.part("caps"), desk.part("pauses")
    assert caps.restore("writer", "day", "Ada") == caps.agents()
    assert pauses.resume("writer", "Ada") == {"paused": []}
    assert desk.engine.package.sql("SELECT * FROM jobs_decisions") == []
    no_such = desk.part("errors").NotFound
    with pytest.raises(no_such, match="'wirter'"):
        caps.restore("wirter", "day", "Ada")
    with pytest.raises(no_such, match="'wirter'"):
        pauses.resume("wirter", "Ada")
    caps.lower("writer", "day", "5", by="Ada")
    (window,) = caps.restore("writer", "day", "Bob", "over")["writer"]["windows"]
    assert window["brake"] is None
    decided = desk.engine.package.sql("SELECT kind, note FROM jobs_decisions")
    assert {(row["kind"], row["note"]) for row in decided} == {
        ("caps lower", "5.00"),
        ("caps restore", "over"),
    }


@pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)
def test_a_brake_that_a_hand_has_broken_lets_nothing_be_spent(desk: Desk) -> None:
    """No other dialect stores it.  It blocks, and `status` says so."""
    (id_,) = desk.put("paid")
    desk.part("caps").lower("writer", "day", "5", by="Ada")
    desk.engine.package.sql("UPDATE jobs_brakes SET amount = 'much'")
    assert desk.claim(desk.marked([id_])).refused == [id_]
    assert told(desk, id_)[0] == "budget"
    text = desk.part("looking").status(NOTHING).text
    assert "writer day: nothing, since the brake is 'much' by Ada at 20" in text
