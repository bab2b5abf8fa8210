"""What a spec of the right shape must still satisfy, one pass per file.

A pass takes the draft and yields findings; none sees what another found.  To add a
check, write a pass (or extend one) and give its code to the catalogue.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from qgen.resolve import (
    collisions,
    fields,
    idle,
    money,
    names,
    overrides,
    payload,
    references,
    retries,
    schedules,
    services,
    timing,
    zones,
)
from qgen.resolve.draft import Draft
from qgen.spec.finding import Finding

Pass = Callable[[Draft], Iterator[Finding]]

PASSES: Final[tuple[Pass, ...]] = (
    names.check,
    collisions.check,
    references.check,
    fields.check,
    payload.check,
    timing.check,
    retries.check,
    money.check,
    schedules.check,
    zones.check,
    services.check,
    overrides.check,
    idle.check,
)
