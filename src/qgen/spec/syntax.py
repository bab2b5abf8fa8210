"""The parser's own errors, in the user's words and at their place."""

from __future__ import annotations

import re
import tomllib
from typing import Final

from qgen.diagnostics.catalogue import text as codes
from qgen.diagnostics.value import Diagnostic, Related
from qgen.spec.source import Text
from qgen.spec.spans import scan

WHERE: Final = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")

# The beginning of the parser's message: what is wrong, and what to write.  The rest of
# its message is not shown, since it may repeat the file.
SAID: Final = (
    ("Expected '=' after a key", "a key is not followed by =", "write key = value"),
    ("Invalid value", "there is no value here that TOML knows",
     'put texts in quotes: key = "value"'),
    ("Invalid statement", "no key or [table] begins like this",
     'write key = value or [table]; quote a key that has other characters than'
     " A-Z, a-z, 0-9, _ and -"),
    ("Unterminated string", "this text has no closing quote", "close the quote"),
    ("Expected \"'\"", "this text has no closing quote", "close the quote"),
    ("Expected '\"", "this text has no closing quote", "close the quote"),
    ("Unescaped '\\'", "a backslash here begins no known escape",
     "write \\\\ for a backslash, or put the text in single quotes"),
    ("Illegal character", "a character stands here that TOML does not allow",
     "delete it; a text over several lines needs three quotes"),
    ("Found invalid character", "a character stands here that TOML does not allow",
     "delete it; a text over several lines needs three quotes"),
    ("Expected newline or end of document", "something follows that does not belong to"
     " the line", "begin a new line, or a comment with #"),
    ("Unclosed array", "this list is not closed", "write ] at its end"),
    ("Unclosed inline table", "this table is not closed", "write } at its end, on the same line"),
    ("Expected ']'", "a [table] is not closed", "write ] at its end"),
    ("Invalid initial character for a key part", "a key part is missing or begins with"
     " a character that keys do not have", "quote the key"),
    ("Invalid date or datetime", "there is no such date", "mend the date"),
    ("Invalid hex value", "an escape here is not hexadecimal", "write \\u and 4 digits"),
    ("Escaped character is not a Unicode", "there is no such character",
     "write \\u and 4 digits"),
)  # fmt: skip
TWICE: Final = (
    *("Cannot declare", "Cannot overwrite", "Cannot mutate", "Cannot redefine"),
    *("Duplicate inline table key", "Cannot add"),
)


def offset_of(text: Text, error: tomllib.TOMLDecodeError) -> int:
    """Where the parser stopped; its columns count characters from 1, as ours do."""
    found = WHERE.search(str(error))
    if found is None or found[1] is None:
        return len(text.text.rstrip())
    line = min(int(found[1]), len(text.starts))
    return min(text.starts[line - 1] + int(found[2]) - 1, len(text.text))


def syntax_error(text: Text, error: tomllib.TOMLDecodeError) -> Diagnostic:
    """What the parser said, at its place."""
    said = str(error)
    offset = offset_of(text, error)
    if said.startswith("Illegal character") and text.text[offset] in "\r\n":
        said = "Unterminated string"
    known = (entry for entry in SAID if said.startswith(entry[0]))
    _, wrong, write = next(known, ("", "this is not TOML", "see https://toml.io"))
    return text.problem(codes.SYNTAX, (offset, offset), f"{wrong}.", write)


def duplicate(text: Text, error: tomllib.TOMLDecodeError) -> Diagnostic | None:
    """A key or table that stands twice, with both places."""
    if not str(error).startswith(TWICE):
        return None
    offset = offset_of(text, error)
    end = text.text.find("\n", offset)
    defined = scan(text.text[: end if end >= 0 else None]).defined
    before = [each for each in defined if each[1] <= offset]
    if not before:
        return None
    path, start, stop = before.pop()
    earlier = {known[: len(path)]: (at, to) for known, at, to in reversed(before)}
    exact = {known: (at, to) for known, at, to in reversed(before)}
    for length in range(len(path), 0, -1):
        first = exact.get(path[:length]) or earlier.get(path[:length])
        if first:
            name = ".".join(str(part) for part in path[:length])
            return text.problem(
                codes.DUPLICATE,
                (start, stop),
                f"`{name}` is defined here and already on line {text.spot(first[0])[0]}.",
                "keep one of the two",
                [Related(text.place(*first), "first defined here")],
            )
    return None
