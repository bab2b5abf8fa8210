"""A spec as text, data and positions."""

from __future__ import annotations

import bisect
from collections.abc import Iterable
from functools import cached_property
from typing import Any, Literal

from qgen.diagnostics.catalogue.code import Code
from qgen.diagnostics.value import Diagnostic, Place, Related
from qgen.spec.messages import one_line
from qgen.spec.spans import Path, Span, scan

At = Literal["key", "value"]


class Text:
    """A file's text: offsets to places, and diagnostics at them."""

    def __init__(self, file: str, text: str) -> None:
        self.file = file
        self.text = text

    @cached_property
    def starts(self) -> list[int]:
        """The offset of each line's first character."""
        starts, at = [0], 0
        while (at := self.text.find("\n", at) + 1) > 0:
            starts.append(at)
        return starts

    def spot(self, offset: int) -> tuple[int, int]:
        """Line and column of an offset, both from 1."""
        line = bisect.bisect_right(self.starts, offset)
        return line, offset - self.starts[line - 1] + 1

    def place(self, start: int, end: int | None = None) -> Place:
        """The place from one offset to another."""
        stop = start if end is None else end
        return Place(self.file, *self.spot(start), *self.spot(stop))

    def problem(
        self,
        code: Code,
        place: Place | tuple[int, int],
        message: str,
        help: str,
        related: Iterable[Related] = (),
    ) -> Diagnostic:
        """A diagnostic of a code at a place or at a pair of offsets."""
        where = place if isinstance(place, Place) else self.place(*place)
        return Diagnostic(
            where,
            code.code,
            code.severity,
            one_line(message),
            one_line(help),
            tuple(Related(each.place, one_line(each.label)) for each in related),
        )


class Source(Text):
    """A text that TOML accepts: its data, and the place of each key path."""

    def __init__(self, file: str, text: str, data: dict[str, Any]) -> None:
        super().__init__(file, text)
        self.data = data

    @cached_property
    def spans(self) -> dict[Path, Span]:
        """Scanned when the first diagnostic asks."""
        return scan(self.text).spans

    def locate(self, path: Path, at: At = "value") -> Place:
        """The place of a key or value; of an absent one, its nearest table's key; of
        nothing at all, the beginning of the file."""
        while path and path not in self.spans:
            path, at = path[:-1], "key"
        if not path:
            return self.place(0)
        span = self.spans[path]
        return self.place(*(span.key if at == "key" else span.value))
