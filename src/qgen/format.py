"""Black-exact and lint-free, proved before anything is written.

What the templates print is already what black prints; one ``ruff format --check`` over
all of it finds a file where that should ever fail, and only such a file goes through
black.  Then one ``ruff check``.  Both ignore the user's configuration.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

# What "ruff finds nothing" means for generated code.  Line length is black's matter,
# typographic characters in texts are meant, and a field or a job may be called l.
_RULES: Final = (
    "--quiet",
    "--select=E,F,W,I,B,UP,C4,SIM,PIE,RUF",
    "--ignore=E501,E741,E742,E743,RUF001,RUF002,RUF003",
)
# Alone with its defaults, but for the folders it would skip by their names, or
# because git ignores them.
_RUFF: Final = (
    "--isolated",
    "--no-cache",
    "--no-respect-gitignore",
    "--target-version=py311",
    "--exclude=:",
)


class BadOutput(Exception):
    """A rendered file does not compile, or ruff finds something: a bug in qgen."""


def versions() -> tuple[str, ...]:
    """The formatters that shaped the files, for the lock."""
    from importlib.metadata import version

    return tuple(f"{tool} {version(tool)}" for tool in ("black", "ruff"))


def finish(
    texts: Mapping[str, str], folder: Path, beside: Iterable[str] = ()
) -> dict[str, str]:
    """The Python texts as black prints them, compiled and linted.  Raises BadOutput.

    They are written below ``folder``, an empty one, and stay there.  ``beside`` are the
    paths of the engine's files: where an import comes from decides its place.  Starts
    two processes, however many files there are.  The result has an entry for each text
    that black changed: usually none.
    """
    if not texts:
        return {}
    folder = folder.resolve()
    _write(folder, dict.fromkeys(beside, ""))
    _write(folder, texts)
    with ThreadPoolExecutor(2) as pool:  # ruff works while Python compiles
        unformatted = pool.submit(_unformatted, folder)
        linted = pool.submit(_lint, folder)
        for path, text in texts.items():
            _compile(path, text)
    changed = {path: black(texts[path]) for path in unformatted.result()}
    _write(folder, changed)
    found = _lint(folder) if changed else linted.result()
    if found:
        raise BadOutput(found.strip())
    return changed


def black(text: str) -> str:
    """What black prints for a Python text; raises on what is none."""
    from black import format_str
    from black.mode import Mode, TargetVersion

    return format_str(text, mode=Mode(target_versions={TargetVersion.PY311}))


def black_or_none(text: str) -> str | None:
    """The same, None for a text that black cannot read."""
    try:
        return black(text)
    except Exception:
        return None


def _compile(path: str, text: str) -> None:
    try:
        compile(text, path, "exec", dont_inherit=True)
    except (SyntaxError, ValueError) as error:
        raise BadOutput(f"{path}: {error}") from error


def _write(folder: Path, texts: Mapping[str, str]) -> None:
    for parent in {(folder / path).parent for path in texts}:
        parent.mkdir(parents=True, exist_ok=True)
    for path, text in texts.items():
        with open(folder / path, "w", encoding="utf-8", newline="") as file:
            file.write(text)


def _unformatted(folder: Path) -> list[str]:
    """The files that ruff would print differently."""
    found = json.loads(_ruff("format", folder, "--check", "--output-format=json"))
    paths = {Path(each["filename"]).resolve() for each in found}
    return sorted(path.relative_to(folder).as_posix() for path in paths)


def _lint(folder: Path) -> str:
    """What ruff finds, a line each."""
    return _ruff("check", folder, *_RULES, "--output-format=concise")


def _ruff(command: str, folder: Path, *options: str) -> str:
    """What ruff prints about the folder."""
    from ruff import find_ruff_bin  # type: ignore[import-untyped]

    done = subprocess.run(
        [find_ruff_bin(), command, *_RUFF, *options, "."],
        cwd=folder,
        capture_output=True,
        encoding="utf-8",
        env={k: v for k, v in os.environ.items() if not k.startswith("RUFF_")},
    )
    if done.returncode not in (0, 1):
        raise BadOutput(f"ruff {command}: {done.stderr.strip()}")
    return done.stdout
