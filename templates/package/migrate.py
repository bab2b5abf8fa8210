"""Creates and upgrades the tables, and finds where they differ from what is needed.

Migrations are the numbered files beside this module; each is applied once, in order,
in one transaction under a lock, so two migrators may start at once.  An older package
goes on working on newer tables: migrations expand first.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from . import statements
from .database import Database, Transaction
from .errors import SetupError
from .settings import database_url

FOLDER: Final = Path(__file__).parent / "migrations"
_PATIENCE: Final = 10.0
_COLUMN: Final = re.compile(r"^    (\w+) (\w+)\b", re.MULTILINE)
_TABLE: Final = re.compile(
    r"^CREATE TABLE (\w+) \(\n(.*?)^\)", re.MULTILINE | re.DOTALL
)


@dataclass(frozen=True, slots=True)
class Migration:
    """One file of the folder."""

    number: int
    name: str
    sql: str


def migrations() -> list[Migration]:
    """The package's migrations in order."""
    return [
        Migration(int(path.name[:4]), path.stem, path.read_text(encoding="utf-8"))
        for path in sorted(FOLDER.glob("[0-9][0-9][0-9][0-9]_*.sql"))
    ]


def upgrade() -> dict[str, Any]:
    """Applies what is missing; ``from`` and ``to`` are numbers, ``applied`` names."""
    database = Database(database_url(), _PATIENCE)
    try:
        with database.migration() as tx:
            tx.run(statements.MIGRATIONS_TABLE)
            before = _applied(tx)
            new = [m for m in migrations() if m.number not in before]
            for migration in new:
                _refuse_foreign(tx, migration)
                for statement in _split(migration.sql):
                    tx.run(statement)
                tx.run(
                    statements.MIGRATION_INSERT,
                    number=migration.number,
                    name=migration.name,
                )
            found = _differences(tx)
            if found:
                raise SetupError("the tables are not as expected: " + "; ".join(found))
    finally:
        database.close()
    return {
        "from": max(before, default=0),
        "to": max([*before, *(m.number for m in new)], default=0),
        "applied": [m.name for m in new],
    }


def check() -> None:
    """SetupError unless the tables are there and new enough."""
    database = Database(database_url(), _PATIENCE)
    try:
        with database.transaction() as tx:
            before = _applied(tx)
    except SetupError as error:
        raise SetupError(
            f"the tables are missing: run python -m {__package__} migrate"
        ) from error
    finally:
        database.close()
    missing = [m.name for m in migrations() if m.number not in before]
    if missing:
        raise SetupError(
            f"migrations are missing ({', '.join(missing)}): "
            f"run python -m {__package__} migrate"
        )


def drift() -> list[str]:
    """Columns that are missing or of another type, as sentences."""
    database = Database(database_url(), _PATIENCE)
    try:
        with database.transaction() as tx:
            return _differences(tx)
    finally:
        database.close()


def sql() -> str:
    """The text of every migration."""
    return "\n".join(f"-- {m.name}\n{m.sql}" for m in migrations())


def _applied(tx: Transaction) -> set[int]:
    return {int(row["number"]) for row in tx.all(statements.MIGRATIONS_APPLIED)}


def _refuse_foreign(tx: Transaction, migration: Migration) -> None:
    for table, _ in _TABLE.findall(migration.sql):
        if tx.all(statements.TABLE_COLUMNS, table=table):
            raise SetupError(
                f"the table {table} exists already and was not made by these migrations: "
                "rename it, or choose another record.table in the spec"
            )


def _differences(tx: Transaction) -> list[str]:
    found: list[str] = []
    for migration in migrations():
        for table, body in _TABLE.findall(migration.sql):
            columns = {
                row["name"]: row["type"].lower()
                for row in tx.all(statements.TABLE_COLUMNS, table=table)
            }
            for name, kind in _COLUMN.findall(body):
                if name.isupper():
                    continue
                has = columns.get(name)
                if has is None:
                    found.append(
                        f"{table}.{name}: expected {kind}, found no such column"
                    )
                elif not has.startswith(_long(kind.lower())):
                    found.append(f"{table}.{name}: expected {kind}, found {has}")
    return found


def _long(kind: str) -> str:
    return {"timestamptz": "timestamp with time zone"}.get(kind, kind)


def _split(text: str) -> list[str]:
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("--")]
    return [part for part in "\n".join(lines).split(";\n") if part.strip("; \n")]
