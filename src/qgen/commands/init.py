"""``qgen init``: a first spec, and what git should know of the generated files."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from .stop import Stop

SPEC: Final = "queue.toml"
_TEXT: Final = """\
#:schema https://raw.githubusercontent.com/qgen/qgen/main/schema/v1/queue.schema.json
schema_version = 1

[project]
name = "{name}"

# One table per job; its payload's fields and their types.
[jobs.say_hello]
description = "Greet somebody."

[jobs.say_hello.payload]
name = "str"
"""
_ATTRIBUTES: Final = """\
src/{name}_queue/** text eol=lf linguist-generated
tests/{name}_queue/** text eol=lf linguist-generated
qgen.lock text eol=lf linguist-generated
"""
# The database, where DATABASE_URL does not name another; what a worker learned while the
# database was away; and qgen's own memory.
_IGNORED: Final = """\
{name}.db*
.{name}-spool/
.qgen/
"""
_HOOK: Final = """\
repos:
  - repo: local
    hooks:
      - id: qgen-check
        name: qgen check (writes nothing)
        entry: qgen check queue.toml
        language: system
        pass_filenames: false
"""


def run(folder: str, name: str | None) -> int:
    """Write a spec, what git should know, and a pre-commit hook; never over a file."""
    place = Path(folder).absolute()
    if not place.is_dir():
        raise Stop(f"{folder} is not a folder")
    if (place / SPEC).exists() or (place / SPEC).is_symlink():
        raise Stop(f"{SPEC} is already here; qgen build builds it")
    if name is not None and _named(name) != name:
        raise Stop("a name is at most 40 of a-z, 0-9 and _, beginning with a letter")
    name = name or _named(place.name) or "support"
    texts = {
        SPEC: _TEXT,
        ".gitattributes": _ATTRIBUTES,
        ".gitignore": _IGNORED,
        ".pre-commit-config.yaml": _HOOK,
    }
    for path, text in texts.items():
        _write(place / path, text.replace("{name}", name))
    print("Next: describe your jobs in queue.toml, then run qgen build.")
    return 0


def _write(path: Path, text: str) -> None:
    """Create a file; say what to add where there is one already."""
    try:
        with open(path, "x", encoding="utf-8", newline="") as file:
            file.write(text)
    except FileExistsError:
        print(f"kept {path.name}; add to it:\n\n{text}")
    except OSError as error:
        raise Stop(f"cannot write {path}: {error.strerror}") from None
    else:
        print(f"wrote {path.name}")


def _named(text: str) -> str:
    """A project's name made of any text; empty if nothing is left of it."""
    name = re.sub(r"[^a-z0-9]+", "_", text.lower())[:40]
    return name.lstrip("_0123456789").rstrip("_")
