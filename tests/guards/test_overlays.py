"""What two overlays must have in common: no shared module asks which one it is in."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

TEMPLATES = Path(__file__).parents[2] / "templates"
DIALECTS = ("sqlite", "postgresql")


def statements(dialect: str) -> set[str]:
    text = (TEMPLATES / dialect / "statements.py.j2").read_text("utf-8")
    return set(re.findall(r"^([A-Z][A-Z_]*) = ", text, re.MULTILINE))


def public(path: Path) -> dict[str, str]:
    """Public names of a module, with the signature of what is called."""
    found: dict[str, str] = {}
    for node in ast.parse(path.read_text("utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            if not node.name.startswith("_"):
                found[node.name] = ast.unparse(node.args)
        elif isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            for item in node.body:
                if not isinstance(item, ast.FunctionDef | ast.AsyncFunctionDef):
                    continue
                # a Transaction is made by its own module alone
                made = item.name == "__init__" and node.name == "Database"
                if made or not item.name.startswith("_"):
                    found[f"{node.name}.{item.name}"] = ast.unparse(item.args)
    return found


def test_both_dialects_have_the_same_statements() -> None:
    assert statements("sqlite") == statements("postgresql")


def test_every_statement_is_used() -> None:
    engine = "\n".join(
        path.read_text("utf-8")
        for folder in ("package", "forking", "arq", "celery", "rq", *DIALECTS)
        for path in (TEMPLATES / folder).glob("*.py")
    )
    used = set(re.findall(r"statements\.([A-Z_]+)", engine))
    assert statements("sqlite") - used == {"COLUMNS"}


def test_both_databases_have_the_same_functions() -> None:
    sqlite = public(TEMPLATES / "sqlite" / "database.py")
    postgresql = public(TEMPLATES / "postgresql" / "database.py")
    shared = set(sqlite) & set(postgresql)
    assert {"Database.transaction", "Transaction.all", "callers"} <= shared
    assert {name: sqlite[name] for name in shared} == {
        name: postgresql[name] for name in shared
    }


@pytest.mark.parametrize(
    "word", ["sqlite", "postgres", "DIALECT", "arq", "rq", "celery"]
)
def test_no_shared_module_asks_where_it_is(word: str) -> None:
    asking = re.compile(rf"^\s*(el)?if\b.*\b{word}\b", re.MULTILINE | re.IGNORECASE)
    shared = [*TEMPLATES.glob("package/*.py"), *TEMPLATES.glob("forking/*.py")]
    for path in shared:
        assert not asking.search(path.read_text("utf-8")), path.name


def test_an_engine_file_is_signed_once() -> None:
    """A header that stands twice in a template stands twice at every user's site."""
    files = [
        path for path in TEMPLATES.glob("*/**/*.py") if "__pycache__" not in str(path)
    ]
    assert files
    for path in files:
        text = path.read_text("utf-8")
        assert text.count("# qgen-signature:") == 1, path
