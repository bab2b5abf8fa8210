"""What the front knows of a backend."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal

from qgen.model import Setting, Times, Worker

How = Literal["native", "emulated", "refused"]


@dataclass(frozen=True, slots=True)
class Ability:
    """How a backend keeps one promise of the language.

    native: by itself; emulated: by the record and the engine; refused: ``note`` says
    what to write instead.
    """

    feature: str
    how: How
    note: str = ""


# What the record and the engine keep alike on every backend, and what none may use.
EVERYWHERE: Final = (
    Ability("retries, ladders, never, only", "emulated", "by the record"),
    Ability("delays", "emulated", "by the record"),
    Ability("unique jobs", "emulated", "by the record"),
    Ability("timeouts", "emulated", "by the worker's own deadline and watchdog"),
    Ability("TLS to Redis", "native", "verified, host name included"),
    Ability("Redis Sentinel", "refused", "name the address of one server"),
    Ability("Redis Cluster", "refused", "name the address of one server"),
)


@dataclass(frozen=True, slots=True)
class Backend:
    """A backend: what an installation needs, what it can, what it is set to.

    ``settings`` derives what the spec never says by hand, from the times and the workers.
    ``after_grace`` is what a worker may take from the end of the grace to its own, with
    a margin, in seconds.  ``shares`` names overlays of ``templates/`` that it has in common with
    other backends, beside the one of its own name.
    """

    name: str
    summary: str
    requirements: tuple[str, ...]
    abilities: tuple[Ability, ...]
    settings: Callable[[Times, tuple[Worker, ...]], tuple[Setting, ...]]
    after_grace: float
    shares: tuple[str, ...] = ()
