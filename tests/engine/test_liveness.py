"""Who is alive, who may say so, and what is done with the rows of the dead."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from engine.units import Engine, instant


def seen(engine: Engine, boot: str, seconds: float) -> None:
    """Moves a boot's last beat."""
    at = instant(engine.package.dialect, seconds)
    sql = f"UPDATE jobs_boots SET last_seen = {at} WHERE id = ?"
    engine.package.sql(sql, boot)


def is_dead(engine: Engine, boot: str) -> bool:
    sql = "SELECT dead_at FROM jobs_boots WHERE id = ?"
    (row,) = engine.package.sql(sql, boot)
    return row["dead_at"] is not None


class Witness:
    """A beat, and what it called."""

    def __init__(self, engine: Engine, patience: float = 5.0) -> None:
        self.engine = engine
        self.mine = True
        self.calls: list[str] = []
        self.strays: list[str] = []
        self.beat = engine.part("beat").Beat(
            engine.database(patience),
            mine=lambda _id: self.mine,
            on_dead=lambda: self.calls.append("dead"),
            on_cancel=lambda id_, fence: self.calls.append(f"cancel {id_} {fence}"),
            on_stray=lambda row: self.strays.append(row["id"]),
        )

    def begin(self) -> None:
        """Its row, without its thread."""
        self.beat.boot = self.engine.boot()
        self.beat.beat()

    def last_seen(self) -> Any:
        sql = "SELECT last_seen FROM jobs_boots WHERE id = ?"
        (row,) = self.engine.package.sql(sql, self.beat.boot)
        return row["last_seen"]


@pytest.fixture
def witness(engine: Engine) -> Witness:
    made = Witness(engine)
    made.begin()
    return made


# --- the beat -------------------------------------------------------------------


@pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)
def test_the_beat_goes_on_by_itself(engine: Engine) -> None:
    """A thread of its own: whatever the caller does, the boot is seen again."""
    witness = Witness(engine)
    (worker,) = engine.part("registry").WORKERS
    witness.beat.start(worker, "arq")
    first = witness.last_seen()
    until = time.monotonic() + 20
    while witness.last_seen() == first:
        assert time.monotonic() < until, "no second beat came"
        time.sleep(0.1)  # this thread does nothing, as a blocked loop
    witness.beat.end()
    assert is_dead(engine, witness.beat.boot)


@pytest.mark.parametrize("dialect", ["postgresql"])
def test_a_lock_on_the_jobs_stops_no_beat(engine: Engine) -> None:
    """The look at the jobs waits for it; the beat before is committed."""
    witness = Witness(engine, patience=0.3)
    witness.begin()
    before = witness.last_seen()
    with psycopg.connect(engine.package.database_url) as other:
        other.execute("LOCK TABLE jobs IN ACCESS EXCLUSIVE MODE")
        with contextlib.suppress(engine.part("errors").Unavailable):
            witness.beat.beat()
        assert witness.last_seen() > before
    assert witness.beat.fit()


def test_declared_dead_stays_dead(witness: Witness) -> None:
    """The process reads it at its next beat, and its row does not move any more."""
    engine = witness.engine
    engine.package.sql(
        f"UPDATE jobs_boots SET dead_at = {instant(engine.package.dialect)}"
    )
    before = witness.last_seen()
    time.sleep(0.01)
    witness.beat.beat()
    assert witness.calls == ["dead"]
    assert witness.last_seen() == before


def test_a_cancel_reaches_the_process(witness: Witness) -> None:
    engine = witness.engine
    claim = engine.claimed(witness.beat.boot)
    with engine.transaction() as tx:
        engine.record.cancel(tx, claim.id, "me")
    witness.beat.beat()
    assert witness.calls == [f"cancel {claim.id} {claim.fence}"]


def test_a_stray_is_one_at_two_beats(witness: Witness) -> None:
    """Active here and unknown here: at the first look it may be just between the two."""
    claim = witness.engine.claimed(witness.beat.boot)
    witness.mine = False
    witness.beat.beat()
    assert witness.strays == []
    witness.beat.beat()
    assert witness.strays == [claim.id]


def test_who_missed_a_beat_is_not_steady(witness: Witness) -> None:
    """Steady since its first beat; from now on, once one came too late."""
    start, last = witness.beat.steady()
    assert start == last > 0
    time.sleep(0.01)
    witness.beat.beat()
    assert witness.beat.steady()[0] == start
    assert witness.beat.steady()[1] > last
    witness.beat._last_now -= 10_000  # the database's clock, ten heartbeats later
    witness.beat.beat()
    assert witness.beat.steady()[0] > start


# --- the judgement --------------------------------------------------------------


def judged(
    engine: Engine, boot: str, *, steady_for: float, beat_ago: float = 0.0
) -> list[str]:
    """Who is declared dead by this boot, by what it knows of its own beats."""
    now = int(time.time() * 1000)
    rows = engine.ask(
        "BOOTS_DECLARE_DEAD",
        boot=boot,
        steady_since=now - round(steady_for * 1000),
        last_beat=now - round(beat_ago * 1000),
        stall_after=4000,
        heartbeat=1000,
    )
    return [str(row["id"]) for row in rows]


def test_who_has_just_woken_judges_nobody(engine: Engine) -> None:
    """All were silent alike: it watches for one `stall.after` first."""
    judge, silent = engine.boot(), engine.boot()
    seen(engine, silent, -60)
    assert judged(engine, judge, steady_for=3) == []
    assert judged(engine, judge, steady_for=5) == [silent]


def test_who_is_silent_judges_nobody(engine: Engine) -> None:
    """It was asked long ago, and slept since: the statement looks at its last beat."""
    judge, silent = engine.boot(), engine.boot()
    seen(engine, silent, -60)
    seen(engine, judge, -3)
    assert judged(engine, judge, steady_for=100) == []
    seen(engine, judge, -0.1)
    assert judged(engine, judge, steady_for=100) == [silent]


def test_who_does_not_know_its_last_beat_judges_nobody(engine: Engine) -> None:
    """Asked before a sleep: the first beat after it came while the judge was thinking."""
    judge, silent = engine.boot(), engine.boot()
    seen(engine, silent, -60)
    seen(engine, judge, -0.1)
    assert judged(engine, judge, steady_for=100, beat_ago=50) == []
    assert judged(engine, judge, steady_for=100) == [silent]


def test_the_dead_and_the_unknown_judge_nobody(engine: Engine) -> None:
    silent, dead = engine.boot(), engine.boot(dead=True)
    seen(engine, silent, -60)
    nobody = "00000000-0000-4000-8000-000000000000"
    assert judged(engine, dead, steady_for=100) == []
    assert judged(engine, nobody, steady_for=100) == []


# --- the sweep ------------------------------------------------------------------


class Broken:
    """A Redis that answers nothing, and counts who asked."""

    def __init__(self, error: Exception) -> None:
        self.error = error
        self.asked = 0

    def publish(self, _messages: object) -> None:
        self.asked += 1
        raise self.error


@pytest.fixture
def sweeper(engine: Engine) -> Iterator[Any]:
    engine.boot()  # somebody serves the queue
    broker = engine.part("broker").Broker()
    broker.changed()  # its marker is there: this Redis is known
    yield engine.part("recovery").Sweeper(engine.database(), broker)
    broker.close()


def test_a_living_boots_rows_are_left_alone(engine: Engine, sweeper: Any) -> None:
    """Until 15 s after their deadline, whatever a list of stranded rows says."""
    boot = engine.boot()
    claim = engine.claimed(boot, engine.api.Brief(n=1))
    for passed, state in ((1, "active"), (10, "active"), (20, "queued")):
        at = instant(engine.package.dialect, -passed)
        engine.package.sql(f"UPDATE jobs SET deadline_at = {at}")
        sweeper.sweep()
        assert engine.row(claim.id)["state"] == state, f"{passed} s past its deadline"
    (attempt,) = engine.package.attempts(claim.id)
    assert attempt["outcome"] == "timed_out"


def test_recovery_looks_again_as_it_writes(engine: Engine) -> None:
    """The list of stranded rows is stale: the boot lives, so its row stays its own."""
    boot = engine.boot()
    claim = engine.claimed(boot)
    held = engine.held(claim, boot)
    assert engine.finish(engine.outcomes.lost(held)) == {}
    late = engine.outcomes.timed_out(held, engine.job["brief"], stranded=True)
    assert engine.finish(late) == {}
    with engine.transaction() as tx:
        tx.run(engine.statements.BOOT_END, boot=boot)
    assert engine.finish(engine.outcomes.lost(held)) == {claim.id: "queued"}


def test_rows_of_the_dead_are_queued_again(engine: Engine, sweeper: Any) -> None:
    """One sweep: back in the queue and published, one attempt used."""
    boot = engine.boot()
    claim = engine.claimed(boot)
    with engine.transaction() as tx:
        tx.run(engine.statements.BOOT_END, boot=boot)
    counts = sweeper.sweep()
    assert (counts.recovered, counts.published, counts.errors) == (1, 1, 0)
    row = engine.row(claim.id)
    assert (row["state"], row["reason"], row["attempt"]) == ("queued", "recovered", 1)


def forgotten(engine: Engine) -> Any:
    """A row that is marked as published, of which Redis knows nothing."""
    return engine.dispatched()


def test_unknown_to_redis_once_is_not_lost(engine: Engine, sweeper: Any) -> None:
    """It may be taken and not yet claimed: unknown at two sweeps, it is sent again."""
    message = forgotten(engine)
    assert sweeper.sweep().published == 0
    assert engine.row(message.id)["dispatch"] == 1
    assert sweeper.sweep().published == 1
    assert engine.row(message.id)["dispatch"] == 2
    assert sweeper.sweep().published == 0
    assert sweeper.sweep().published == 0


def test_a_redis_that_was_wiped_is_asked_at_once(engine: Engine, sweeper: Any) -> None:
    """Its marker is gone: what it does not know is sent again by the first sweep."""
    message = forgotten(engine)
    engine.redis.delete(f"{engine.package.name}:marker")
    assert sweeper.sweep().published == 1
    assert engine.row(message.id)["dispatch"] == 2


def test_another_redis_is_asked_at_once(engine: Engine, sweeper: Any) -> None:
    """Restarted, or a replica in its place: it has the marker of another run."""
    message = forgotten(engine)
    engine.redis.set(f"{engine.package.name}:marker", "another run")
    assert sweeper.sweep().published == 1
    assert engine.row(message.id)["dispatch"] == 2


@pytest.mark.parametrize("dialect", ["postgresql"])
def test_rounds_take_turns(engine: Engine, sweeper: Any) -> None:
    """Two rounds at once would each fill the window: the second does nothing."""
    id_ = engine.put()
    dispatcher = engine.part("dispatch").Dispatcher(engine.database(), sweeper.broker)
    with engine.transaction() as tx:
        assert tx.one(engine.statements.DISPATCH_TURN)["mine"]
        assert dispatcher.round() == 0
        counts = engine.part("recovery").Counts()
        sweeper._find_lost(counts)
        assert counts.published == 0
    assert engine.row(id_)["dispatch"] == 0
    assert dispatcher.round() == 1


def test_a_push_that_failed_is_undone(engine: Engine) -> None:
    """The mark is taken back at once: the next round has the row, not the next sweep."""
    broken = Broken(engine.part("errors").Unavailable("it is away"))
    publisher = engine.part("dispatch").Publisher(broken)
    message = engine.dispatched()
    assert publisher.push(engine.database(), [message]) == 0
    row = engine.row(message.id)
    assert (row["state"], row["dispatched_at"]) == ("queued", None)
    # Another follows within the second: it does not wait for Redis again.
    (again,) = engine.dispatch()
    assert publisher.push(engine.database(), [again]) == 0
    assert broken.asked == 1
    assert engine.row(message.id)["dispatched_at"] is None


def test_unknown_jobs_get_an_hour(engine: Engine, sweeper: Any) -> None:
    """A deploy may be under way: only then are their rows failed."""
    id_ = engine.put()
    engine.package.sql("UPDATE jobs SET job = 'novel'")
    sweeper.sweep()
    sweeper.sweep()
    row = engine.row(id_)
    assert (row["state"], row["reason"]) == ("queued", "unsupported")
    at = instant(engine.package.dialect, -4000)
    engine.package.sql(f"UPDATE jobs SET run_at = {at}")
    sweeper.sweep()
    row = engine.row(id_)
    assert (row["state"], row["reason"]) == ("failed", "unknown_job")


def test_a_step_that_fails_stops_no_other(engine: Engine, sweeper: Any) -> None:
    """Redis is away: the rows of dead workers are recovered all the same."""
    boot = engine.boot()
    claim = engine.claimed(boot)
    with engine.transaction() as tx:
        tx.run(engine.statements.BOOT_END, boot=boot)

    def away() -> bool:
        raise engine.part("errors").Unavailable("Redis is away")

    sweeper.broker.changed = away
    counts = sweeper.sweep()
    assert (counts.recovered, counts.errors) == (1, 1)
    assert engine.row(claim.id)["state"] == "queued"
