"""Where each key and value of a TOML text stands.

The scanner tokenises a text that the parser has already accepted; it never validates.
Offsets count characters of the text.  Linear in the size of the text.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass, field

Path = tuple[str | int, ...]

BLANK = re.compile(r"[ \t]*")
GAP = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
KEY = re.compile(r'"(?:[^"\\]|\\.)*"|\'[^\']*\'|[A-Za-z0-9_-]+')
STRING = re.compile(
    r'"""(?:[^"\\]|\\[\s\S]|"(?!""))*"{3,5}'
    r"|'''(?:[^']|'(?!''))*'{3,5}"
    r'|"(?:[^"\\]|\\.)*"'
    r"|'[^']*'"
)
# Numbers, booleans and dates; a date and its time may stand apart.
BARE = re.compile(r"\d{4}-\d\d-\d\d \d[^ \t\r\n,#\]}]*|[^ \t\r\n,#\]}]+")


@dataclass(frozen=True, slots=True)
class Span:
    """Offsets of a key and of its value; of an entry in a list both are the entry's, of
    a table both are the key's."""

    key: tuple[int, int]
    value: tuple[int, int]


@dataclass(slots=True)
class Scan:
    """What a scan found: the span of each path, and every definition in file order."""

    spans: dict[Path, Span] = field(default_factory=dict)
    defined: list[tuple[Path, int, int]] = field(default_factory=list)


class Stop(Exception):
    """The text ends in the middle of something: a broken text was scanned."""


def scan(text: str) -> Scan:
    """The spans of a text.  Of a broken text, those before the break."""
    scanner = Scanner(text)
    try:
        scanner.document()
    except (Stop, tomllib.TOMLDecodeError):
        pass
    return scanner.found


class Scanner:
    """One pass over a text; the methods take an offset and return the next one."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.found = Scan()
        self.lists: dict[Path, int] = {}  # arrays of tables: the index of their last

    def document(self) -> None:
        """All statements: ``key = value``, ``[table]`` and ``[[table]]``."""
        base: Path = ()
        at = self.skip(GAP, 0)
        while at < len(self.text):
            if self.text[at] == "[":
                at, base = self.header(at)
            else:
                at = self.pair(at, base)
            at = self.skip(GAP, at)

    def header(self, at: int) -> tuple[int, Path]:
        double = self.text.startswith("[[", at)
        parts, at = self.key(at + 1 + double)
        path: Path = ()
        for number, (name, start, end) in enumerate(parts, 1):
            path += (name,)
            here = Span((start, end), (start, end))
            self.found.spans.setdefault(path, here)
            last = number == len(parts)
            if last:
                self.found.defined.append((path, start, end))
            if double and last:
                self.lists[path] = self.lists.get(path, -1) + 1
            if path in self.lists:
                path += (self.lists[path],)
            if last:
                self.found.spans[path] = here
        return at + 1 + double, path

    def pair(self, at: int, path: Path) -> int:
        parts, at = self.key(at)
        start = end = at
        for name, start, end in parts:
            path += (name,)
            self.found.spans.setdefault(path, Span((start, end), (start, end)))
        self.found.defined.append((path, start, end))
        begin = self.skip(BLANK, at + 1)
        at = self.value(begin, path)
        self.found.spans[path] = Span((start, end), (begin, at))
        return at

    def key(self, at: int) -> tuple[list[tuple[str, int, int]], int]:
        parts = []
        while True:
            match = KEY.match(self.text, self.skip(BLANK, at))
            if match is None:
                raise Stop
            parts.append((plain(match.group()), match.start(), match.end()))
            at = self.skip(BLANK, match.end())
            if not self.text.startswith(".", at):
                return parts, at
            at += 1

    def value(self, at: int, path: Path) -> int:
        opening = self.text[at : at + 1]
        if opening not in ("[", "{"):
            match = (STRING if opening in ('"', "'") else BARE).match(self.text, at)
            if match is None:
                raise Stop
            return match.end()
        index, at = 0, at + 1
        while True:
            at = self.skip(GAP, at)
            character = self.text[at : at + 1]
            if character == "":
                raise Stop
            if character in "]}":
                return at + 1
            if character == ",":
                at += 1
            elif opening == "{":
                at = self.pair(at, path)
            else:
                end = self.value(at, (*path, index))
                self.found.spans[(*path, index)] = Span((at, end), (at, end))
                index, at = index + 1, end

    def skip(self, blanks: re.Pattern[str], at: int) -> int:
        match = blanks.match(self.text, at)
        return match.end() if match else at


def plain(token: str) -> str:
    """The name that a key token stands for."""
    if token[0] == "'":
        return token[1:-1]
    if token[0] == '"':
        return next(iter(tomllib.loads(f"{token}=0")))
    return token
