"""What every backend does alike with jobs, processes and Redis, one function each.

A behaviour takes the stage of one cell and fails where the cell does not keep it.  The
judge is the record, read with plain SQL, and the file in which handlers write down what
they do; never the engine and never the backend.
"""

from __future__ import annotations

import signal
import time

from engine.faults import LONG, until
from parity.stage import Stage, alive, kill, parent_of
from parity.table import behaviour

# --- jobs -----------------------------------------------------------------------


@behaviour()
def runs_to_completion(stage: Stage) -> None:
    """Async and plain handlers, more than there are slots: each once, with its result."""
    api = stage.package.api
    with stage.worker():
        stage.add(0, 20)
        plain = api.enqueue_many([api.Plain(n=n) for n in range(20, 30)])
        stage.completed(30)
    assert stage.package.row(plain[0].id)["result"] == 20
    done = {row["result"]["n"] for row in stage.package.rows("job = 'work'")}
    assert done == set(range(20))


@behaviour()
def retries_what_fails(stage: Stage) -> None:
    """An exception is an attempt; the next one waits as the policy says."""
    with stage.worker():
        (id_,) = stage.add(1, mode="once:ValueError")
        stage.package.in_state(id_, "completed")
    assert stage.package.row(id_)["attempt"] == 2
    (failed,) = stage.package.attempts(id_)
    assert failed["error"]["type"].endswith("ValueError")
    first, second = (run.at for run in stage.package.ledger.starts(1))
    assert second - first >= 0.1


@behaviour()
def keeps_dead_letters(stage: Stage) -> None:
    """What fails every try ends as failed, under its cause, and is not run again."""
    with stage.worker():
        (id_,) = stage.add(1, mode="raise:KeyError")
        row = stage.package.in_state(id_, "failed")
    assert (row["reason"], row["attempt"]) == ("exhausted", 3)
    assert len(stage.package.ledger.starts(1)) == 3
    (cause,) = stage.package.json("dead-letters")["causes"]
    assert (cause["count"], cause["state"]) == (1, "failed")


@behaviour()
def ends_at_the_timeout(stage: Stage) -> None:
    """A handler that sleeps past its deadline is cancelled; the worker goes on."""
    api = stage.package.api
    with stage.worker() as worker:
        id_ = api.enqueue(api.Brief(n=1, seconds=60)).id
        row = stage.package.in_state(id_, "failed")
        assert row["reason"] == "timed_out"
        stage.add(2)
        until(lambda: stage.package.ledger.ends(2), "the next job")
        assert worker.running


@behaviour()
def outlives_a_blocked_handler(stage: Stage) -> None:
    """Longer than the stall time without giving the loop a chance: it runs once."""
    with stage.worker(), stage.worker():
        (id_,) = stage.add(1, mode="block", seconds=5.5)
        stage.add(2, 4)
        stage.completed(5)
    assert stage.package.row(id_)["attempt"] == 1


@behaviour()
def ends_a_handler_that_never_stops(stage: Stage) -> None:
    """Its attempt is ended by the watchdog: failed, and the slot is used again."""
    api = stage.package.api
    with stage.worker() as worker:
        id_ = api.enqueue(api.Brief(n=1, mode="block", seconds=3600)).id
        row = stage.package.in_state(id_, "failed")
        assert row["reason"] == "timed_out"
        if not stage.kind.supervised:
            assert worker.exit_code() == 1
            return
        stage.add(2, 6, seconds=0.1)
        stage.package.settled()
        assert worker.running
    assert stage.package.states() == {"failed": 1, "completed": 6}


@behaviour()
def leaves_unknown_jobs_alone(stage: Stage) -> None:
    """A row of a job that this version does not have waits; the others run."""
    (id_,) = stage.add(1)
    stage.package.sql("UPDATE jobs SET job = 'novel' WHERE id = ?", id_)
    with stage.worker() as worker:
        stage.add(2, 5)
        until(lambda: stage.package.states()["completed"] == 5, "the known ones")
        until(lambda: stage.package.row(id_)["reason"] == "unsupported", "its reason")
        assert worker.running
    row = stage.package.row(id_)
    assert (row["state"], row["attempt"]) == ("queued", 0)


# --- stopping -------------------------------------------------------------------


def _stops(stage: Stage, send: str) -> None:
    gate = stage.gate()
    with stage.worker() as worker:
        (short,) = stage.add(1, mode=f"gate:{gate}")
        (long,) = stage.add(2, seconds=3600)
        stage.started(1), stage.started(2)
        if send == "group":
            worker.send_group(signal.SIGTERM)
        else:
            worker.terminate()
        until(lambda: "draining" in worker.log(), worker.log)
        gate.touch()
        stage.package.in_state(short, "completed")
        assert worker.running, "the long job had its grace still before it"
        assert worker.exit_code() == 0, worker.log()
    row = stage.package.row(long)
    assert (row["state"], row["reason"], row["releases"]) == ("queued", "released", 1)
    assert all(boot["dead_at"] for boot in stage.package.boots()), "no goodbye"
    with stage.worker():
        stage.started(2, times=2)
        assert stage.package.row(long)["attempt"] == 2
    assert len(stage.package.ledger.starts(1)) == 1


@behaviour()
def drains_at_sigterm(stage: Stage) -> None:
    """What ends within the grace ends, the rest is released without using an attempt."""
    _stops(stage, "process")


@behaviour()
def drains_at_sigterm_to_the_group(stage: Stage) -> None:
    """As Ctrl-C in a terminal: the signal reaches every process at once, and counts once."""
    _stops(stage, "group")


@behaviour()
def releases_at_the_second_sigterm(stage: Stage) -> None:
    """Nobody waits for the grace."""
    package = stage.patient
    with stage.worker(patient=True) as worker:
        ids = stage.add(1, 2, seconds=3600)
        stage.started(1), stage.started(2)
        worker.terminate()
        until(lambda: "draining" in worker.log(), worker.log)
        worker.terminate()
        until(lambda: not worker.running, "its end without the grace", 20)
        assert worker.exit_code() == 0, worker.log()
    for id_ in ids:
        row = package.row(id_)
        assert (row["state"], row["attempt"], row["releases"]) == ("queued", 1, 1)


@behaviour()
def gives_back_what_it_has_taken(stage: Stage) -> None:
    """20 jobs, a stop after the first two: 18 run elsewhere at once, each once."""
    gate = stage.gate()
    with stage.worker(patient=True) as worker:
        stage.add(0, 20, mode=f"gate:{gate}")
        until(lambda: len(stage.package.ledger.starts()) >= 2, "two starts")
        worker.terminate()
        until(lambda: "draining" in worker.log(), worker.log)
        gate.touch()
        assert worker.exit_code() == 0, worker.log()
    assert stage.package.states() == {"completed": 2, "queued": 18}
    with stage.worker(patient=True):
        stage.completed(20)
    assert len(stage.package.ledger.starts()) == 20


# --- killing --------------------------------------------------------------------


@behaviour()
def survives_the_kill_of_everything(stage: Stage) -> None:
    """The end of a container: another worker finds the jobs, within the stall time."""
    with stage.worker() as worker:
        ids = stage.add(3, 2, seconds=3600)
        stage.started(3), stage.started(4)
        worker.kill()
    with stage.worker():
        stage.started(3, times=2), stage.started(4, times=2)
        for id_ in ids:
            (lost,) = stage.package.attempts(id_)
            assert lost["outcome"] == "worker_lost"
    stage.explained()


@behaviour(lambda kind: kind.supervised)
def survives_the_kill_of_the_parent(stage: Stage) -> None:
    """Its children notice, finish or release what they run, and go."""
    gate = stage.gate()
    with stage.worker(patient=True) as worker:
        (id_,) = stage.add(1, mode=f"gate:{gate}")
        stage.started(1)
        family = worker.family()
        kill(worker.pid)
        gate.touch()
        until(lambda: not alive(family), lambda: f"their end: {alive(family)}")
    assert stage.package.row(id_)["state"] == "completed"
    stage.add(2, 3)
    with stage.worker(patient=True):
        stage.completed(4)


@behaviour(lambda kind: kind.supervised)
def recovers_at_once_what_a_killed_process_ran(stage: Stage) -> None:
    """The process of one job is killed: nobody waits for the stall time, and its
    neighbour goes on."""
    gate = stage.gate()
    with stage.worker(patient=True) as worker:
        ids = stage.add(1, 2, mode=f"gate:{gate}")
        first, _ = stage.started(1), stage.started(2)
        kill(first.pid)
        second = stage.started(1, times=2)
        gate.touch()
        stage.package.settled()
        assert worker.running
    assert second.at - first.at < 60
    rows = [stage.package.row(id_) for id_ in ids]
    assert [(row["state"], row["attempt"]) for row in rows] == [
        ("completed", 2),
        ("completed", 1),
    ]
    (lost,) = stage.package.attempts(ids[0])
    assert lost["outcome"] == "worker_lost"


@behaviour(lambda kind: kind.forks)
def recovers_at_once_from_the_kill_between(stage: Stage) -> None:
    """The process between the parent and that of a job: the orphan's end counts no more."""
    gate = stage.gate()
    with stage.worker(patient=True) as worker:
        (id_,) = stage.add(1, mode=f"gate:{gate}")
        first = stage.started(1)
        kill(parent_of(first.pid))
        stage.started(1, times=2)
        gate.touch()
        row = stage.package.in_state(id_, "completed")
        assert row["attempt"] == 2
        until(lambda: not alive([first.pid]), "the orphan's end")
        assert worker.running
    assert row["result"] == {"n": 1, "attempt": 2}
    (lost,) = stage.package.attempts(id_)
    assert lost["outcome"] == "worker_lost", "it waited for the orphan"
    stage.explained()


@behaviour(lambda kind: kind.supervised)
def a_poison_job_takes_nobody_along(stage: Stage) -> None:
    """It kills its process at every try: failed after the last; the others are served."""
    with stage.worker() as worker:
        (id_,) = stage.add(1, mode="die")
        stage.add(2, 20, seconds=0.05)
        row = stage.package.in_state(id_, "failed")
        assert (row["reason"], row["attempt"]) == ("worker_lost", 3)
        assert stage.package.settled() == {"failed": 1, "completed": 20}
        assert worker.running
    others = {run.n: run for run in stage.package.ledger.starts() if run.n != 1}
    assert {run.attempt for run in others.values()} == {1}


@behaviour()
def pays_once_across_a_kill(stage: Stage) -> None:
    """Killed between two paid calls: the first is not made again, the second is made."""
    api = stage.package.api
    with stage.worker() as worker:
        id_ = api.enqueue(api.Buy(n=1, seconds=3600)).id
        until(lambda: stage.package.ledger.lines("first"), "the first call")
        worker.kill()
    with stage.worker():
        stage.package.in_state(id_, "completed")
    assert stage.bill() == [f"{id_} first", f"{id_} second"]
    assert stage.package.row(id_)["cost"] == 100_000


# --- Redis ----------------------------------------------------------------------


@behaviour()
def forgets_nothing_with_redis(stage: Stage) -> None:
    """FLUSHALL with jobs running and waiting: each runs once."""
    stage.add(0, 2, seconds=1.5)
    with stage.worker():
        stage.started(0), stage.started(1)
        stage.add(10, 20)
        stage.redis.flush()
        stage.completed(22)


@behaviour()
def outlives_a_restart_of_redis(stage: Stage) -> None:
    """Idle, then with jobs running: what runs ends meanwhile, what waits runs after."""
    with stage.worker() as worker:
        stage.add(0)
        until(lambda: stage.package.ledger.ends(0), "the first")
        stage.redis.kill()
        stage.redis.start()
        stage.add(1)
        until(lambda: stage.package.ledger.ends(1), "one after an idle restart")
        stage.add(2, 2, seconds=1)
        stage.started(2), stage.started(3)
        stage.redis.kill()
        stage.add(10, 6)
        until(
            lambda: stage.package.states()["completed"] == 4,
            lambda: f"ends while Redis is away {stage.package.states()}",
        )
        stage.redis.start()
        stage.completed(10)
        assert worker.running


@behaviour()
def outlives_dropped_connections(stage: Stage) -> None:
    """Every connection to Redis is cut three times in three seconds."""
    hand = stage.by_hand()
    with stage.worker() as worker:
        stage.add(0, 30, seconds=0.1)
        stage.started(0)  # without Redis a worker does not begin
        for _ in range(3):
            time.sleep(0.8)
            hand.client_kill_filter(_type="normal", skipme=True)
        stage.completed(30)
        assert worker.running
    hand.close()


@behaviour()
def outlives_a_replica(stage: Stage) -> None:
    """Redis refuses writes, as after a failover; 20 s with QGEN_LONG=1.  Then it goes on."""
    hand = stage.by_hand()
    with stage.worker() as worker:
        stage.add(0)
        until(lambda: stage.package.ledger.ends(0), "the first")
        hand.replicaof("127.0.0.1", "1")
        stage.add(1, 5)
        time.sleep(20 if LONG else 2)
        assert worker.running
        hand.replicaof("no", "one")
        stage.completed(6)
        assert worker.running
    hand.close()


@behaviour()
def shares_redis_with_others(stage: Stage) -> None:
    """What other programs keep there stays as it is, and nothing of ours is left over."""
    hand = stage.by_hand()
    hand.rpush("rq:queue:default", "another program's job")
    hand.hset("rq:job:another", mapping={"data": "x"})
    hand.rpush("celery", "{}")
    hand.zadd("arq:queue", {"another": 1})
    hand.set("arq:job:another", "x")
    theirs = {key: hand.dump(key) for key in hand.scan_iter()}
    with stage.worker() as worker:
        stage.add(0, 10)
        stage.completed(10)
        worker.terminate()
        assert worker.exit_code() == 0
    assert {key: hand.dump(key) for key in theirs} == theirs
    left = [
        key
        for key in set(hand.scan_iter()) - set(theirs)
        if hand.ttl(key) == -1 and b"job" in key
    ]
    assert not left, left
    hand.close()
