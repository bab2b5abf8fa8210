"""The front of the compiler: text in, model and diagnostics out."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pydantic import ValidationError

from qgen.diagnostics.catalogue import values
from qgen.diagnostics.value import Diagnostic, Place, has_errors, ordered
from qgen.model import Model
from qgen.resolve import PASSES
from qgen.resolve.build import build
from qgen.resolve.draft import Draft
from qgen.spec.features import unbuilt
from qgen.spec.finding import Finding
from qgen.spec.load import read
from qgen.spec.prune import without
from qgen.spec.secrets import find_secrets
from qgen.spec.shape import Spec
from qgen.spec.source import Source
from qgen.spec.spans import Path
from qgen.spec.suggest import nearest
from qgen.targets import TARGETS

Answer = tuple[Model | None, tuple[Diagnostic, ...]]


def analyse(data: bytes, file: str, target: str | None = None) -> Answer:
    """Read a spec.  Pure: the same bytes give the same answer.

    ``file`` is the name that diagnostics show; ``target`` overrides the spec's own.  The
    model is there exactly when no diagnostic is an error; warnings come with it.
    """
    source = read(data, file)
    if isinstance(source, tuple):
        return None, source
    spec, found = shaped(source.data)
    refused = {finding.path for finding in found}
    chosen = target or (spec.project.target if spec else "arq")
    found += unbuilt(source.data, chosen)
    draft = Draft(spec, chosen, whole=not refused) if spec else None
    if draft:
        for check in PASSES:
            found += (each for each in check(draft) if not rests_on(each, refused))
    diagnostics = [finding.placed(source) for finding in found]
    diagnostics += wrong_target(source, chosen, target)
    sorted_ = ordered(diagnostics)
    return (None if has_errors(sorted_) or not draft else build(draft)), sorted_


def shaped(data: dict[str, Any]) -> tuple[Spec | None, list[Finding]]:
    """The typed spec, and what the gate refuses.

    The types and the schema give the same verdict (the suite demands it), the types
    many times faster: so the schema is only asked what there is to say of a refusal.
    """
    secrets = list(find_secrets(data))
    if not secrets:
        try:
            return Spec.model_validate(data), []
        except ValidationError:
            pass
    found = gate(data, secrets)
    return shape_of(data, found), found


def gate(data: dict[str, Any], secrets: list[Finding]) -> list[Finding]:
    """Secrets, and what the schema refuses; of a secret nothing else is said."""
    from qgen.spec.validate import validate

    hidden = {finding.path for finding in secrets}
    return secrets + [each for each in validate(data) if each.path not in hidden]


def shape_of(data: dict[str, Any], found: Iterable[Finding]) -> Spec | None:
    """The typed spec, without what the gate refused, so that one run reports all.

    None when too little is left.  Of data that the gate let pass, a refusal by the
    types is a bug in qgen, and raised.
    """
    refused = [finding.path for finding in found]
    try:
        return Spec.model_validate(without(data, refused))
    except ValidationError:
        if refused:
            return None
        raise


def rests_on(finding: Finding, refused: set[Path]) -> bool:
    """True for a finding about a value that was refused already."""
    return any(
        path[:length] in refused
        for path in finding.paths()
        for length in range(1, len(path) + 1)
    )


def wrong_target(source: Source, chosen: str, given: str | None) -> list[Diagnostic]:
    """A target that there is none of."""
    if chosen in TARGETS:
        return []
    path: Path = ("project", "target")
    place = Place(source.file) if given else source.locate(path)
    built = " or ".join(sorted(TARGETS))
    near = nearest(chosen, list(TARGETS), 0.6)
    message = "there is no such target."
    write = f"did you mean {near}?" if near else f"use {built}"
    return [source.problem(values.NOT_A_CHOICE, place, message, write)]
