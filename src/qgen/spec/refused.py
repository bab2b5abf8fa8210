"""What was refused, so that nothing is said again of what follows from it."""

from __future__ import annotations

from collections.abc import Iterable

from qgen.spec.finding import Finding
from qgen.spec.spans import Path


class Refused:
    """Paths whose values were left out of what the passes look at."""

    def __init__(self, found: Iterable[Finding] = ()) -> None:
        paths = [(each.path, each.meant) for each in found]
        self._paths = {path for pair in paths for path in pair if path is not None}
        self._tables = {
            path[:length] for path in self._paths for length in range(1, len(path))
        }

    def __bool__(self) -> bool:
        return bool(self._paths)

    def has(self, path: Path) -> bool:
        """True for a value that was refused, or is inside of one that was.

        A job may have a key from ``[defaults]``.
        """
        if (
            path[:1] == ("jobs",)
            and len(path) > 2
            and self.has(("defaults", *path[2:]))
        ):
            return True
        return any(path[:length] in self._paths for length in range(1, len(path) + 1))

    def touches(self, path: Path) -> bool:
        """True for that, and for a table or list of which a part was refused."""
        return path in self._tables or self.has(path)

    def explains(self, finding: Finding) -> bool:
        """True for a finding that may be there only because something was refused."""
        return any(map(self.has, finding.paths())) or any(
            map(self.touches, finding.unless)
        )
