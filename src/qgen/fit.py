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
_OPENING: Final = "([{"
_CLOSING: Final = ")]}"


def fit(text: str) -> Code:
    """Every line of ``text`` that is too long, broken at its last outermost bracket."""
    lines = text.split("\n")
    return Code("\n".join(_fit(line) if width(line) > LINE else line for line in lines))


def _fit(line: str) -> str:
    indent = line[: len(line) - len(line.lstrip())]
    head, entries, tail = _split(line)
    if not entries:
        return line
    inner = f"{indent}    "
    is_call = head[-2:-1].isidentifier() or head[-2:-1] == "]"
    joined = f"{inner}{', '.join(entries)}"
    if is_call and head.endswith("(") and width(joined) <= LINE:
        return f"{head}\n{joined}\n{indent}{tail}"
    broken = (fit(f"{inner}{entry},") for entry in entries)
    return "\n".join([head, *broken, f"{indent}{tail}"])


def _split(line: str) -> tuple[str, list[str], str]:
    """The line up to its last outermost opening bracket, what is inside, the rest."""
    depth, start, last = 0, 0, (0, 0)
    for token in _TOKEN.finditer(line):
        if token[0] in _OPENING:
            start = token.end() if depth == 0 else start
            depth += 1
        elif token[0] in _CLOSING:
            depth -= 1
            last = (start, token.start()) if depth == 0 else last
    return line[: last[0]], _entries(line[slice(*last)]), line[last[1] :]


def _entries(inside: str) -> list[str]:
    depth, entries, current = 0, [], ""
    for token in _TOKEN.finditer(inside):
        depth += (token[0] in _OPENING) - (token[0] in _CLOSING)
        if token[0] == "," and depth == 0:
            entries.append(current.strip())
            current = ""
        else:
            current += token[0]
    return [*entries, current.strip()] if current.strip() else entries
