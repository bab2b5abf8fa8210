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
from qgen.spec.refused import Refused
from qgen.spec.secrets import find_secrets
from qgen.spec.shape import Spec
from qgen.spec.source import Source
from qgen.spec.spans import Path
from qgen.spec.suggest import nearest
from qgen.targets import TARGETS

Answer = tuple[Model | None, tuple[Diagnostic, ...]]


def analyse(
    data: bytes, file: str, target: str | None = None, built: str | None = None
) -> Answer:
    """Read a spec.  Pure: the same bytes give the same answer.

    ``file`` is the name that diagnostics show; ``target`` is the command line's and
    ``built`` the last build's, as ``target_of`` says.  The model is there exactly when no
    diagnostic is an error; warnings come with it.
    """
    source = read(data, file)
    if isinstance(source, tuple):
        return None, source
    spec, found = shaped(source.data)
    refused = Refused(found)
    chosen = target_of(spec, target, built)
    said = [unbuilt(source.data, chosen)]
    draft = Draft(spec, chosen, refused) if spec else None
    if draft:
        said += (check(draft) for check in PASSES)
    found += (each for part in said for each in part if not refused.explains(each))
    diagnostics = [finding.placed(source) for finding in found]
    diagnostics += wrong_target(source, chosen, target)
    sorted_ = ordered(diagnostics)
    return (None if has_errors(sorted_) or not draft else build(draft)), sorted_


def target_of(spec: Spec | None, given: str | None, built: str | None) -> str:
    """The target: the command line's, else the spec's, else the last build's, else arq.

    Every command asks here, so what one builds the next one checks.
    """
    own = spec.project.target if spec else None
    known = built if built in TARGETS else None
    return given or own or known or "arq"


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
    """Secrets, and what the schema refuses; of a secret nothing else is said, nor that
    a key is missing where it is misspelt."""
    from qgen.spec.validate import validate

    found = validate(data)
    said = {finding.path for finding in secrets}
    meant = {finding.meant for finding in found}
    return secrets + [
        each
        for each in found
        if each.path not in said and meant.isdisjoint(each.unless)
    ]


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
