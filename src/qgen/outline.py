"""What QUEUE.md says of the files: why each is there, and what each test proves.

It is read from the files' own docstrings, so it cannot disagree with them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Final

from .files import File
from .model import Model

_DOCSTRING: Final = re.compile(r'(?:#[^\n]*\n|\s)*"""(.*?)"""', re.DOTALL)
_TEST: Final = re.compile(
    r"^(?:async )?def (test_\w+)\(.*?\)(?: -> [^\n]*)?:\n(?:    \"{3}(.*?)\"{3})?",
    re.DOTALL | re.MULTILINE,
)
_WHY: Final = {
    "compose.yaml": "How the workers run in containers: yours to change.",
    "Dockerfile": "The image of the workers: yours to change.",
    "QUEUE.md": "This plan.",
    "py.typed": "Tells type checkers that the package is typed.",
    "requirements.txt": "What an installation needs, and nothing else.",
}


@dataclass(frozen=True, slots=True)
class Row:
    """A file of the plan."""

    path: str
    kind: str
    why: str


@dataclass(frozen=True, slots=True)
class Case:
    """A generated test: its name, and the sentences of its docstring."""

    name: str
    set_up: str
    expected: str


def rows(files: Iterable[File], path: str, model: Model) -> list[Row]:
    """The files' table, ``path`` (QUEUE.md itself) among them; sorted."""
    jobs = {f"/jobs/{job.name}.py": job for job in model.jobs}
    found = [Row(path, "managed", _WHY["QUEUE.md"])]
    for file in files:
        job = jobs.get(f"/jobs/{PurePosixPath(file.path).name}")
        is_job = job is not None and file.path.endswith(f"/jobs/{job.name}.py")
        own = f"Payload and entry of job {job.name}." if job and is_job else file.why
        why = own or _why(file)
        found.append(Row(file.path, file.kind, why))
    return sorted(found, key=lambda row: row.path)


def cases(files: Iterable[File]) -> list[Case]:
    """The generated tests, in the order of their files."""
    tests = (file for file in files if PurePosixPath(file.path).name[:5] == "test_")
    return [case for file in tests for case in _cases(file.text)]


def _why(file: File) -> str:
    name = PurePosixPath(file.path).name
    if name in _WHY:
        return _WHY[name]
    if name.endswith(".sql"):
        return "Makes the tables; run by the migrate command."
    return _first_sentence(_docstring(file.text)) if name.endswith(".py") else ""


def _first_sentence(text: str) -> str:
    paragraph = " ".join(text.split("\n\n")[0].replace("``", "").split())
    return paragraph.partition(". ")[0].removesuffix(".") + "." if paragraph else ""


def _docstring(text: str) -> str:
    found = _DOCSTRING.match(text)
    return found[1] if found else ""


def _cases(text: str) -> Iterator[Case]:
    """Read as black prints them: parsing the suite would take longer than the page."""
    for found in _TEST.finditer(text):
        said = (found[2] or "").split("\n\n")
        words = [" ".join(part.split()) for part in said]
        yield Case(found[1], words[0], " ".join(words[1:]))
