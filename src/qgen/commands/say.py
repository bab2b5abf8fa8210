"""How a command speaks: notes and diagnostics to stderr, results to stdout."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from ..diagnostics import printers
from ..diagnostics.value import Diagnostic, has_errors, ordered
from ..emit.plan import State, Step

# What a build did to a path, and what it would do; a state that is in neither column
# is left alone.
_DID: Final = {
    State.MISSING: "new",
    State.CHANGED: "changed",
    State.REFORMATTED: "reformatted",
    State.CONFLICTED: "conflict undone",
    State.ORPHANED: "removed",
    State.EDITED: "overwritten",
    State.FOREIGN: "overwritten",
    State.FROZEN: "overwritten",
}
PLANNED: Final = {
    State.SAME: "unchanged",
    State.MISSING: "to be written",
    State.CHANGED: "to be changed",
    State.REFORMATTED: "to be reformatted",
    State.CONFLICTED: "to be rebuilt",
    State.EDITED: "edited, stops",
    State.FOREIGN: "foreign, stops",
    State.FROZEN: "frozen, stops",
    State.REFUSED: "refused, stops",
    State.ORPHANED: "to be removed",
    State.KEPT: "kept",
    State.OWNED: "yours",
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
        touched = [step for step in steps if step.state in _DID]
        same = sum(step.state is State.SAME for step in steps)
        print(f"{len(touched)} changed, {same} unchanged")
        for step in touched[:40]:
            print(f"  {_DID[step.state]:15} {step.path}")
        if len(touched) > 40:
            print(f"  and {len(touched) - 40} more")

    def end(self, found: Iterable[Diagnostic]) -> int:
        """Print the diagnostics; 1 when there is an error, or anything with --strict."""
        sorted_ = ordered(found)
        if self.format == "text":
            colour = sys.stderr.isatty() and "NO_COLOR" not in os.environ
            sys.stderr.write(printers.text(sorted_, colour))
        else:
            sys.stdout.write(printers.PRINTERS[self.format](sorted_))
        return int(has_errors(sorted_) or (self.strict and bool(sorted_)))
