"""What the text of a file is made of: what is made of the same again is not rendered.

A digest covers all that a template is given, so two equal ones are one text.  Where that
would be too much (the modules that all jobs share are given the model), the template is
given less: what it cannot read its text cannot depend on.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import sha256
from typing import Any

from .model import Job, Model

# The text of a path, made before of what this digest is of; None where it is not known.
Recall = Callable[[str, str], str | None]


def nothing(_path: str, _made_of: str) -> None:
    """A recall that knows nothing: everything is rendered."""


@dataclass(frozen=True, slots=True)
class Names:
    """A job as the modules see it that all jobs share."""

    name: str
    class_name: str


class Shared:
    """The model as those modules are given it: of a job its names, of what follows from
    all jobs nothing.  A template that asked for more would fail."""

    def __init__(self, model: Model) -> None:
        jobs: Any = tuple(Names(job.name, job.class_name) for job in model.jobs)
        absent: Any = None
        target = replace(model.target, settings=absent)
        self.model = replace(
            model, jobs=jobs, target=target, times=absent, facts=absent
        )

    @cached_property
    def text(self) -> str:
        """All of it; a ``repr`` tells every two values of a model apart."""
        return repr(self.model)


class Made:
    """The digests of one compilation, and what was made of them before.

    What TOML holds has a ``repr`` that tells every two values apart.
    """

    def __init__(self, data: dict[str, Any], spec: str, recall: Recall) -> None:
        self._jobs: dict[str, object] = data["jobs"]
        others = {key: table for key, table in data.items() if key != "jobs"}
        self._spec = sha256(_bytes(f"{spec}\n"))
        self._tables = sha256(_bytes(f"{spec}\n{others!r}\n"))
        self.recall = recall

    def of_job(self, job: Job, model: Model, path: str) -> str:
        """Of a job's file: the job's own tables, and those that are no job's."""
        own = f"{path}\n{model.target.name}\n{job.name}\n{self._jobs[job.name]!r}"
        digest = self._tables.copy()
        digest.update(_bytes(own))
        return digest.hexdigest()

    def of_shared(self, template: str, shared: Shared, path: str) -> str:
        """Of a module that all jobs share."""
        return self._of(f"{path}\n{template}\n{shared.text}")

    def of_sql(self, template: str, model: Model, path: str) -> str:
        """Of a file of SQL: names."""
        return self._of(f"{path}\n{template}\n{model.record.table}")

    def _of(self, text: str) -> str:
        digest = self._spec.copy()
        digest.update(_bytes(text))
        return digest.hexdigest()


def _bytes(text: str) -> bytes:
    """A spec may be called anything that a disk lets it be called."""
    return text.encode("utf-8", "surrogatepass")
