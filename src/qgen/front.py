"""The front of the compiler: text in, model and diagnostics out."""

from __future__ import annotations

from qgen.diagnostics.value import Diagnostic
from qgen.model import Model


def analyse(
    data: bytes, file: str, target: str | None = None
) -> tuple[Model | None, tuple[Diagnostic, ...]]:
    """Read a spec.  Pure: the same bytes give the same answer.

    ``file`` is the name that diagnostics show; ``target`` overrides the spec's own.  The
    model is there exactly when no diagnostic is an error; warnings come with it.
    """
    raise NotImplementedError
