"""What the compiler makes: files, each of one of three kinds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

from .signature import has_signature, signed

# managed: rewritten by every build.  once: written only where nothing is, then the
# user's.  append: written once and never changed afterwards (migrations).  ejected: a
# managed file that its owner took over; qgen leaves it alone.
Kind = Literal["managed", "once", "append", "ejected"]


@dataclass(frozen=True, slots=True)
class File:
    """A file to be: ``path`` is relative to the spec's folder, with ``/``.

    ``text`` has LF line ends; one that is ``given`` as a function is made when somebody
    asks, for what is its owner's already never.  An engine file is not rendered but
    copied.  A file that has another of the paths in ``unless`` on disk already is not
    written (``once`` only).  ``made_of`` is a digest of all that the text follows from,
    where that is known; ``why`` what the plan says of the file, where its own first
    sentence does not.
    """

    path: str
    given: str | Callable[[], str]
    kind: Kind = "managed"
    unless: tuple[str, ...] = ()
    is_rendered: bool = True
    made_of: str = ""
    why: str = ""

    @property
    def text(self) -> str:
        """The whole text."""
        return self.given if isinstance(self.given, str) else self.given()

    @property
    def needs_proof(self) -> bool:
        """True for Python that this spec made; the suite has proved the engine's."""
        return self.is_rendered and self.path.endswith(".py")

    def with_text(self, text: str) -> File:
        """The same file with a text that is signed anew, if it was signed."""
        return replace(self, given=signed(text) if has_signature(text) else text)
