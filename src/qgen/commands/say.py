"""How a command speaks: notes and diagnostics to stderr, results to stdout."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ..diagnostics.value import Diagnostic, has_errors, ordered
from ..emit.plan import State, Step

if TYPE_CHECKING:
    from .work import Work

FORMATS: Final = ("text", "json", "github", "sarif")
_SHOWN: Final = {
    State.MISSING: "new",
    State.CHANGED: "changed",
    State.REFORMATTED: "reformatted",
    State.CONFLICTED: "conflict undone",
    State.ORPHANED: "removed",
    State.EDITED: "overwritten",
    State.FOREIGN: "overwritten",
    State.FROZEN: "overwritten",
}


@dataclass(slots=True)
class Output:
    """One command's output; ``end`` prints what was found and gives the exit code."""

    format: str = "text"
    quiet: bool = False
    strict: bool = False

    def note(self, text: str) -> None:
        """One line about what is going on."""
        if not self.quiet:
            print(f"qgen: {text}", file=sys.stderr)

    def diff(self, step: Step) -> None:
        """What a person's edit consists of."""
        if self.format == "text":
            print("\n".join(step.diff()), file=sys.stderr)

    def steps(self, steps: Sequence[Step]) -> None:
        """What was written: counts first, then the paths."""
        if self.quiet or self.format != "text":
            return
        touched = [step for step in steps if step.state in _SHOWN]
        same = sum(step.state is State.SAME for step in steps)
        print(f"{len(touched)} changed, {same} unchanged")
        for step in touched[:40]:
            print(f"  {_SHOWN[step.state]:15} {step.path}")
        if len(touched) > 40:
            print(f"  and {len(touched) - 40} more")

    def end(self, job: Work, found: Iterable[Diagnostic]) -> int:
        """Print the diagnostics; 1 when there is an error, or anything with --strict."""
        sorted_ = ordered(found)
        for each in sorted_:
            print(
                f"{each.place}: {each.severity} {each.code}: {each.message}",
                file=sys.stderr,
            )
            print(f"  {each.help}", file=sys.stderr)
        return int(has_errors(sorted_) or (self.strict and bool(sorted_)))
