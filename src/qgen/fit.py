"""One statement on one line, broken as black breaks it when it is too long.

Covers what the templates print: a value, a call or an import, with strings, brackets
and commas.  The suite holds it against black over generated names and values; where it
should ever differ, the build's formatting step mends the file.
"""

from __future__ import annotations

import re
from typing import Final

from .literal import Code, width

LINE: Final = 88
_TOKEN: Final = re.compile(
    r'"(?:[^"\\]|\\.)*"|\'(?:[^\'\\]|\\.)*\'|[][(){},]|[^][(){},"\']+'
)
_FIELD: Final = re.compile(
    r"\s*\w+: \w+(\.\w+)*( \| None)? = "
)  # its type has no brackets
_OPENING: Final = "([{"
_CLOSING: Final = ")]}"


def fit(text: str) -> Code:
    """Every line of ``text`` that is too long, broken at an outermost bracket."""
    return Code("\n".join(_fit(line) for line in text.split("\n")))


def _fit(line: str) -> str:
    if width(line) <= LINE:
        return line
    brackets = _outermost(line)
    indent = line[: len(line) - len(line.lstrip())]
    if not brackets:
        # A value that cannot be broken stands in parentheses, however long it is.
        if not (field := _FIELD.match(line)):
            return line
        return f"{field[0]}(\n{indent}    {line[field.end() :]}\n{indent})"
    # The last bracket is opened, unless what stands before it is itself too long.
    start, end = brackets[-1]
    if width(line[:start]) > LINE:
        left, equals, right = line.partition(" = ")
        if equals and width(left) + 4 <= LINE:
            return f"{left} = (\n{_fit(f'{indent}    {right}')}\n{indent})"
        start, end = brackets[0]
    if "] | None" in line[end - 1 :]:
        return line  # black puts such a union into parentheses; it is left to it
    head, tail = line[:start], _fit(f"{indent}{line[end:]}")
    entries = _entries(line[start:end])
    if not entries:
        return line
    joined = f"{indent}    {', '.join(entries)}"
    if len(entries) == 1 and not line[:end].endswith(","):
        return f"{head}\n{_fit(joined)}\n{tail}"
    # A call or a subscript may keep what it holds on one line, a value never does.
    if width(joined) <= LINE and re.search(r"\w[\[(]$", head):
        return f"{head}\n{joined}\n{tail}"
    broken = (_fit(f"{indent}    {entry},") for entry in entries)
    return "\n".join([head, *broken, tail])


def _outermost(line: str) -> list[tuple[int, int]]:
    """Where the insides of the outermost brackets begin and end, empty ones left out."""
    depth, start, found = 0, 0, []
    for token in _TOKEN.finditer(line):
        if token[0] in _OPENING:
            start = token.end() if depth == 0 else start
            depth += 1
        elif token[0] in _CLOSING and depth:  # a tail begins with one of the head's
            depth -= 1
            if depth == 0 and start < token.start():
                found.append((start, token.start()))
    return found


def _entries(inside: str) -> list[str]:
    """What stands between the commas."""
    depth, entries, current = 0, [], ""
    for token in _TOKEN.finditer(inside):
        depth += (token[0] in _OPENING) - (token[0] in _CLOSING)
        if token[0] == "," and depth == 0:
            entries.append(current.strip())
            current = ""
        else:
            current += token[0]
    return [*entries, current.strip()] if current.strip() else entries
