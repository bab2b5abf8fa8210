"""What Redis is told and asked, in arq's own format.

A message is an arq job: a member of the queue's sorted set (score: the row's
``sort_at``, so a high row is taken first) and the key ``arq:job:<id>`` that holds the
job's name and ``[row id, dispatch]``.  Taking a message removes it: the row is the
record, and what is lost on the way is found by ``known``.
"""

from __future__ import annotations

import json
import os
import re
import ssl
from collections.abc import Sequence
from typing import Any, Final, cast
from urllib.parse import unquote, urlsplit

import redis
from arq.connections import RedisSettings
from redis.exceptions import RedisError

from .errors import SetupError, Unavailable
from .record import Message
from .registry import PROJECT
from .settings import place, redis_url

# Far above any wait: a message must not expire before its row is claimed.
MESSAGE_LIFE_MS: Final = 30 * 86_400_000

_ROW_ID: Final = re.compile(
    r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
)

# KEYS: one queue per message.  ARGV: life, then id, score, body per message.
# Adding the same dispatch again does nothing.
_PUBLISH: Final = """
for n, queue in ipairs(KEYS) do
    local id, score, body = ARGV[3 * n - 1], ARGV[3 * n], ARGV[3 * n + 1]
    if redis.call('SET', 'arq:job:' .. id, body, 'PX', ARGV[1], 'NX') then
        redis.call('ZADD', queue, score, id)
    end
end
return #KEYS
"""

# KEYS: queues in order of preference.  ARGV: how many.  What was published is due: no
# clock but the database's decides.
TAKE: Final = """
local taken = {}
for _, queue in ipairs(KEYS) do
    local left = ARGV[1] - #taken
    if left <= 0 then break end
    local ids = redis.call('ZRANGE', queue, 0, left - 1)
    for _, id in ipairs(ids) do
        redis.call('ZREM', queue, id)
        local key = 'arq:job:' .. id
        local body = redis.pcall('GET', key)
        redis.call('DEL', key)
        taken[#taken + 1] = {queue, id, type(body) == 'string' and body or ''}
    end
end
return taken
"""

# KEYS: one queue per message.  ARGV: ids.  1 = waiting.
_KNOWN: Final = """
local known = {}
for n, queue in ipairs(KEYS) do
    known[n] = redis.call('ZSCORE', queue, ARGV[n])
        and redis.call('EXISTS', 'arq:job:' .. ARGV[n]) or 0
end
return known
"""


def queue_key(queue: str) -> str:
    """The sorted set of a queue."""
    return f"{PROJECT.name}:{queue}"


def transport_id(row_id: str, dispatch: int) -> str:
    """The id in Redis: the row's own at first, then one per dispatch.

    So adding a dispatch twice does nothing, and what an old one left behind cannot
    swallow the new one.
    """
    return row_id if dispatch <= 1 else f"{row_id}_{dispatch}"


def body_of(message: Message) -> bytes:
    """arq's job data as JSON (never pickle: Redis is not trusted with code)."""
    return pack(
        {
            "t": None,
            "f": message.job,
            "a": [message.id, message.dispatch],
            "k": {},
            "et": message.sort_at,
        }
    )


def pack(data: dict[str, Any]) -> bytes:
    """arq's ``job_serializer``."""
    return json.dumps(data, default=repr).encode()


def unpack(data: bytes) -> dict[str, Any]:
    """arq's ``job_deserializer``."""
    return cast(dict[str, Any], json.loads(data))


def message_in(body: bytes) -> Message | None:
    """The message of a job's data; None for anything that this package did not write."""
    try:
        data = unpack(body)
        row_id, dispatch = data["a"]
        if isinstance(dispatch, int) and _ROW_ID.fullmatch(row_id):
            return Message(row_id, dispatch, job=str(data["f"]))
    except (ValueError, TypeError, KeyError, RecursionError):
        pass
    return None


class Broker:
    """Publishes and looks up messages; safe to share between threads."""

    def __init__(self) -> None:
        self._redis = connect()
        self._publish = self._redis.register_script(_PUBLISH)
        self._known = self._redis.register_script(_KNOWN)

    def check(self) -> None:
        """Unavailable or SetupError unless this Redis can be used."""
        try:
            self._redis.ping()
            info = cast(dict[str, Any], self._redis.info("cluster"))
        except RedisError as error:
            raise _unavailable(error) from error
        if info.get("cluster_enabled"):
            raise SetupError(
                f"{PROJECT.redis_env} is a Redis Cluster, which arq cannot use: "
                "use a single Redis server (with a replica, if you like)"
            )

    def eviction_policy(self) -> str | None:
        """Redis's ``maxmemory-policy``, None where it may not be asked."""
        try:
            info = cast(dict[str, Any], self._redis.info("memory"))
        except RedisError as error:
            raise _unavailable(error) from error
        policy = info.get("maxmemory_policy")
        return None if policy is None else str(policy)

    def publish(self, messages: Sequence[Message]) -> None:
        """Adds messages; all are in Redis when it returns, or Unavailable is raised."""
        try:
            for start in range(0, len(messages), 1000):
                part = messages[start : start + 1000]
                args: list[Any] = [MESSAGE_LIFE_MS]
                for m in part:
                    args += (transport_id(m.id, m.dispatch), m.sort_at, body_of(m))
                self._publish(keys=[queue_key(m.queue) for m in part], args=args)
        except RedisError as error:
            raise _unavailable(error) from error

    def known(self, messages: Sequence[Message]) -> set[str]:
        """Row ids of those messages that wait in Redis (a taken one does not wait)."""
        found: set[str] = set()
        try:
            for start in range(0, len(messages), 1000):
                part = messages[start : start + 1000]
                answer = self._known(
                    keys=[queue_key(m.queue) for m in part],
                    args=[transport_id(m.id, m.dispatch) for m in part],
                )
                found.update(m.id for m, yes in zip(part, answer, strict=True) if yes)
        except RedisError as error:
            raise _unavailable(error) from error
        return found

    def changed(self) -> bool:
        """Whether Redis was wiped, restarted or replaced since the last call by anyone.

        A marker key holds the server's run id; gone or different = changed.
        """
        key = f"{PROJECT.name}:marker"
        try:
            server = cast(dict[str, Any], self._redis.info("server"))
            run_id = str(server.get("run_id", ""))
            before = cast("bytes | None", self._redis.get(key))
            if before is not None and before.decode() == run_id:
                return False
            self._redis.set(key, run_id)
        except RedisError as error:
            raise _unavailable(error) from error
        return True

    def close(self) -> None:
        """Closes the connections."""
        self._redis.close()


def connect() -> redis.Redis:
    """A client with short timeouts: a push must not hang."""
    settings = redis_settings()
    tls: dict[str, Any] = {}
    if settings.ssl:
        tls = {
            "ssl": True,
            "ssl_cert_reqs": settings.ssl_cert_reqs,
            "ssl_check_hostname": settings.ssl_check_hostname,
            "ssl_ca_certs": settings.ssl_ca_certs,
        }
    return redis.Redis(
        host=cast(str, settings.host),
        port=settings.port,
        db=settings.database,
        username=settings.username,
        password=settings.password,
        socket_timeout=2,
        socket_connect_timeout=2,
        **tls,
    )


def redis_settings() -> RedisSettings:
    """arq's settings, from the parsed URL.

    Not ``RedisSettings.from_dsn``: it does not decode ``%xx`` in passwords, ignores
    every option, and does not check the host name of a certificate.
    """
    parts = urlsplit(redis_url())
    tls = parts.scheme == "rediss"
    database = parts.path.strip("/") or "0"
    if not database.isdigit():
        raise SetupError(
            f"{PROJECT.redis_env} does not end in a database's number: write /0"
        )
    ca = os.environ.get(PROJECT.redis_ca_env) if PROJECT.redis_ca_env else None
    if PROJECT.redis_ca_env and tls and not ca:
        raise SetupError(
            f"{PROJECT.redis_ca_env} is not set: set it to the file of the CA's certificate"
        )
    if ca and not os.path.isfile(ca):
        raise SetupError(f"{PROJECT.redis_ca_env} names no file: {ca}")
    return RedisSettings(
        host=parts.hostname or "localhost",
        port=parts.port or 6379,
        database=int(database),
        username=unquote(parts.username) if parts.username else None,
        password=unquote(parts.password) if parts.password else None,
        ssl=tls,
        ssl_cert_reqs="required" if PROJECT.redis_verify else "none",
        ssl_check_hostname=tls and PROJECT.redis_verify,
        ssl_ca_certs=ca,
        conn_timeout=2,
    )


def _unavailable(error: RedisError) -> Exception:
    where = place(redis_url())
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLError):
            return SetupError(
                f"Redis at {where} does not show a certificate that can be verified: "
                f"{cause.reason or cause}"
            )
        cause = cause.__cause__ or cause.__context__
    text = str(error).split("\n")[0][:200]
    if "AuthenticationError" in type(error).__name__ or "WRONGPASS" in text:
        return SetupError(f"Redis at {where} refuses the user or password")
    return Unavailable(f"Redis at {where} does not answer: {text}")
