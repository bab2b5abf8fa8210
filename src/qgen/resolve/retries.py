"""Retry policies: waits, ladders, exceptions."""

from __future__ import annotations

import builtins
from collections.abc import Iterator
from typing import Final

from qgen.diagnostics.catalogue import relations as codes
from qgen.resolve.draft import Draft
from qgen.resolve.units import limit, seconds
from qgen.spec.finding import Finding
from qgen.spec.shape import Retry
from qgen.spec.spans import Path
from qgen.spec.suggest import nearest

# Of Python 3.11, so that newer versions judge alike.
NEWER: Final = frozenset({"PythonFinalizationError"})
BUILTINS: Final = (
    frozenset(
        name
        for name, each in vars(builtins).items()
        if isinstance(each, type) and issubclass(each, BaseException)
    )
    - NEWER
)
# What a call may raise after it was sent, and what such errors are kinds of: a timeout,
# a reset, a broken pipe.  (A refused connection was never one.)
NO_PROOF: Final = frozenset(
    {
        *("BaseException", "Exception", "BaseExceptionGroup", "ExceptionGroup"),
        *("OSError", "EnvironmentError", "IOError", "TimeoutError", "EOFError"),
        *("ConnectionError", "ConnectionAbortedError", "ConnectionResetError"),
        *("BrokenPipeError", "KeyboardInterrupt", "SystemExit", "GeneratorExit"),
    }
)


def check(draft: Draft) -> Iterator[Finding]:
    """Each policy, and the exceptions an agent is not billed for."""
    for name, policy in draft.spec.retries.items():
        at: Path = ("retries", name)
        yield from waits(at, policy)
        yield from exceptions((*at, "never"), policy.never)
        yield from exceptions((*at, "only"), policy.only)
        if policy.never and policy.only:
            yield Finding(
                codes.ONLY_WITH_NEVER,
                (*at, "only"),
                "`only` and `never` stand in one policy.",
                "keep `only` to retry nothing else, or `never` to retry all but those",
                at="key",
                also=(((*at, "never"), "`never`"),),
            )
    for name, agent in draft.spec.agents.items():
        at = ("agents", name, "not_billed")
        yield from exceptions(at, agent.not_billed)
        yield from proofs(at, agent.not_billed)


def waits(at: Path, policy: Retry) -> Iterator[Finding]:
    """How long it waits, one way and in reach."""
    given = policy.model_fields_set
    if policy.ladder:
        for key in ("wait", "factor", "max_wait"):
            if key in given:
                yield Finding(
                    codes.WAIT_WITH_LADDER,
                    (*at, key),
                    f"`{key}` has no effect beside `ladder`.",
                    "keep the ladder, or wait, factor and max_wait",
                    at="key",
                    also=(((*at, "ladder"), "the ladder"),),
                )
    elif seconds(policy.wait) > seconds(policy.max_wait):
        yield Finding(
            codes.MAX_WAIT,
            (*at, "wait"),
            f"`wait` is {policy.wait}, above `max_wait` ({policy.max_wait}).",
            f'write max_wait = "{policy.wait}" or more',
            also=(((*at, "max_wait"), "the longest wait"),),
            unless=((*at, "ladder"),),
        )
    first_key = "ladder" if policy.ladder else "wait"
    first = policy.ladder[0] if policy.ladder else policy.wait
    elapsed = limit(policy.max_elapsed)
    if elapsed is not None and elapsed <= seconds(first):
        yield Finding(
            codes.ELAPSED,
            (*at, "max_elapsed"),
            f"`max_elapsed` is {policy.max_elapsed}, not above the first wait ({first}):"
            " there would never be a second attempt.",
            "write a longer max_elapsed, or tries = 1",
            also=(((*at, first_key), "the first wait"),),
            unless=((*at, "ladder"),),
        )
    if policy.tries == 1:
        for key in ("ladder", "max_elapsed"):
            if key in given:
                yield Finding(
                    codes.FIXED_TRIES,
                    (*at, key),
                    f"`{key}` has no effect with tries = 1.",
                    "raise tries, or leave it out",
                    at="key",
                    also=(((*at, "tries"), "tries"),),
                )


def proofs(at: Path, names: list[str]) -> Iterator[Finding]:
    """An error proves that nothing was billed only where the call cannot have begun."""
    for index, name in enumerate(names):
        if name in NO_PROOF:
            yield Finding(
                codes.NO_PROOF,
                (*at, index),
                f"`{name}` is no proof: a call that was sent, and billed, may end in it or"
                " in a kind of it.",
                "name only what your provider promises not to bill, such as"
                ' "httpx:ConnectError"',
            )


def exceptions(at: Path, names: list[str]) -> Iterator[Finding]:
    """A bare name must be a builtin exception."""
    for index, name in enumerate(names):
        if ":" in name or name in BUILTINS:
            continue
        near = nearest(name, {each.lower() for each in BUILTINS}, 0.7)
        close = next((each for each in sorted(BUILTINS) if each.lower() == near), None)
        write = f"did you mean `{close}`? " if close else ""
        yield Finding(
            codes.NOT_A_BUILTIN,
            (*at, index),
            f"`{name}` is not a builtin exception.",
            f"{write}others are written with their module, such as"
            f' "support.errors:{name}"',
        )
