"""How a command speaks: notes and diagnostics to stderr, results to stdout."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, NamedTuple

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
_LISTED: Final = 40
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


class Said(NamedTuple):
    """What a command printed, and its exit code."""

    out: str
    err: str
    code: int


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

    @contextmanager
    def stage(self, text: str) -> Iterator[None]:
        """A stage that is named on the terminal when it takes more than a second."""
        shown = self.format == "text" and not self.quiet and sys.stderr.isatty()
        timer = threading.Timer(1.0, self.note, [f"{text} ..."])
        timer.daemon = True
        if shown:
            timer.start()
        try:
            yield
        finally:
            timer.cancel()

    def diff(self, step: Step) -> None:
        """What a person's edit consists of."""
        if self.format == "text":
            print("\n".join(step.diff()), file=sys.stderr)

    def summary(self, steps: Sequence[Step]) -> str:
        """What a build that ends well says of its files: counts first, then paths."""
        if self.quiet or self.format != "text":
            return ""
        touched = [step for step in steps if step.state in _DID]
        same = sum(step.state is State.SAME for step in steps)
        lines = [f"{len(touched)} changed, {same} unchanged"]
        lines += [f"  {_DID[step.state]:15} {step.path}" for step in touched[:_LISTED]]
        if len(touched) > _LISTED:
            lines.append(f"  and {len(touched) - _LISTED} more")
        return "".join(f"{line}\n" for line in lines)

    def end(self, found: Iterable[Diagnostic], summary: str = "") -> Said:
        """Print what there is to say; 1 when there is an error, or any with --strict."""
        sorted_ = ordered(found)
        code = int(has_errors(sorted_) or (self.strict and bool(sorted_)))
        if self.format == "text":
            colour = sys.stderr.isatty() and "NO_COLOR" not in os.environ
            said = Said(summary, printers.text(sorted_, colour), code)
        else:
            said = Said(printers.PRINTERS[self.format](sorted_), "", code)
        sys.stdout.write(said.out)
        sys.stderr.write(said.err)
        return said
