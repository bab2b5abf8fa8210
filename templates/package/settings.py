"""Where the database and Redis are: read from the environment, never from the spec."""

from __future__ import annotations

import os
from urllib.parse import urlsplit

from .database import SCHEMES
from .errors import SetupError
from .registry import PROJECT


def database_url() -> str:
    """The address of the record, or SetupError with the variable's name."""
    url = os.environ.get(PROJECT.database_env) or PROJECT.database_default
    if not url:
        raise SetupError(
            f"{PROJECT.database_env} is not set: set it to the address of the database, "
            f"like {SCHEMES[0]}://..."
        )
    scheme = url.partition(":")[0]
    if scheme.partition("+")[0] not in SCHEMES:
        raise SetupError(
            f"{PROJECT.database_env} has the scheme {scheme[:20]!r}; this package was built "
            f"for {SCHEMES[0]}://...; change the variable or the spec's record.dialect"
        )
    return url


def redis_url() -> str:
    """The address of Redis, or SetupError with the variable's name."""
    url = os.environ.get(PROJECT.redis_env)
    if not url:
        raise SetupError(
            f"{PROJECT.redis_env} is not set: set it to the address of Redis, "
            "like redis://localhost:6379/0"
        )
    try:
        parts = urlsplit(url)
        fine = parts.scheme in ("redis", "rediss") and bool(parts.hostname)
        _ = parts.port
    except ValueError:
        fine = False
    if not fine:
        raise SetupError(
            f"{PROJECT.redis_env} is not an address like redis://host:6379/0 or "
            "rediss://host:6380/0"
        )
    if PROJECT.redis_tls is True and parts.scheme == "redis":
        raise SetupError(
            f"{PROJECT.redis_env} is redis://, but the spec says redis.tls = true: "
            "use rediss://"
        )
    if PROJECT.redis_tls is False and parts.scheme == "rediss":
        raise SetupError(
            f"{PROJECT.redis_env} is rediss://, but the spec says redis.tls = false: "
            "use redis:// or change the spec"
        )
    return url


def place(url: str) -> str:
    """Host, port and path of an address: what may be printed, no user, no password."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return "the configured address"
    return f"{host}{port}{parts.path}"
