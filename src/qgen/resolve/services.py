"""Redis and the record: settings that go together."""

from __future__ import annotations

from collections.abc import Iterator

from qgen.diagnostics.catalogue import relations as codes
from qgen.resolve.draft import Draft
from qgen.spec.finding import Finding
from qgen.spec.messages import shown
from qgen.spec.spans import Path


def check(draft: Draft) -> Iterator[Finding]:
    """Certificates, then the adopted table."""
    yield from certificates(draft)
    yield from adoption(draft)


def certificates(draft: Draft) -> Iterator[Finding]:
    """What is checked, and whether there is anything to check."""
    redis = draft.spec.redis
    off = redis.tls is False
    if not redis.verify and not off:
        yield Finding(
            codes.NOT_VERIFIED,
            ("redis", "verify"),
            "the certificate of Redis is not checked.",
            "leave verify out; name a private CA with ca_file_env",
        )
    for key in ("verify", "ca_file_env"):
        if off and key in redis.model_fields_set:
            yield Finding(
                codes.CA_WITHOUT_TLS,
                ("redis", key),
                f"`{key}` has no effect with `tls = false`.",
                "write tls = true, or leave it out",
                at="key",
                also=((("redis", "tls"), "`tls`"),),
            )


def adoption(draft: Draft) -> Iterator[Finding]:
    """Keys of an adopted table, and names of it that meet."""
    record = draft.spec.record
    given = record.model_fields_set
    wanted = [(key, "existing = true") for key in ("id_type", "columns", "states")]
    missing = [*wanted] if not record.existing else []
    if record.migrations != "alembic":
        missing.append(("versions", 'migrations = "alembic"'))
    for key, other in missing:
        if key in given:
            yield Finding(
                codes.ADOPTION_ONLY,
                ("record", key),
                f"`{key}` has no effect without {other}.",
                f"write {other}, or leave it out",
                at="key",
                also=((("record", other.partition(" ")[0]), "the other key"),),
            )
    names: list[tuple[str, str, Path]] = []
    for table in ("columns", "states"):
        shape = getattr(record, table)
        for ours in type(shape).model_fields:
            theirs = getattr(shape, ours) or []
            words = [theirs] if isinstance(theirs, str) else theirs
            names += [(table, word, ("record", table, ours)) for word in words]
    seen: dict[tuple[str, str], Path] = {}
    for table, name, path in names:
        first = seen.setdefault((table, name), path)
        if first != path:
            what = "columns" if table == "columns" else "states"
            yield Finding(
                codes.STATES_MEET,
                path,
                f"{shown(name)} stands for two {what}.",
                "give each its own",
                at="key",
                also=((first, "already here"),),
            )
