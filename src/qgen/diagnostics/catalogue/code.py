"""A code: the fixed part of a diagnostic, with an example that fires it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from qgen.diagnostics.value import Severity

HEAD: Final = "schema_version = 1\n"
PROJECT: Final = '\n[project]\nname = "support"\n'
JOBS: Final = '\n[jobs.draft_reply.payload]\nticket_id = "uuid"\n'


@dataclass(frozen=True, slots=True)
class Code:
    """One kind of problem.

    ``why`` explains it to someone who looks it up.  ``example`` is the part of a spec
    that matters; ``spec()`` makes it whole.  ``raw`` stands in for examples that are no
    text at all, ``target`` for a target given on the command line.
    """

    code: str
    title: str
    why: str
    example: str = ""
    severity: Severity = "error"
    raw: bytes = b""
    target: str | None = None

    def spec(self) -> bytes:
        """A whole spec that draws this code."""
        if self.raw:
            return self.raw
        if self.example.startswith("schema_version"):
            return f"{self.example}{PROJECT}{JOBS}".encode()
        project = "" if "[project]" in self.example else PROJECT
        jobs = "" if "[jobs" in self.example else JOBS
        return f"{HEAD}{project}\n{self.example}{jobs}".encode()
