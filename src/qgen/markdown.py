"""Texts in Markdown: shown as they are, never read as markup."""

from __future__ import annotations

import re
from typing import Final

from .literal import Code, printable

_MARKUP: Final = re.compile(r"([\\`*_{}\[\]()!|~$])")
_TICKS: Final = re.compile("`+")


def cell(text: str) -> Code:
    """Any text in a paragraph or a table cell, on one line."""
    line = " ".join(printable(text).split())
    line = line.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return Code(_MARKUP.sub(r"\\\1", line))


def code(text: str) -> Code:
    """Any text in a code span, in a table too."""
    line = " ".join(printable(text).split()).replace("|", "\\|")
    if line and "`" not in line:
        return Code(f"`{line}`")
    longest = max(map(len, _TICKS.findall(line)), default=0)
    fence = "`" * (longest + 1)
    pad = " " if line.startswith("`") or line.endswith("`") or not line else ""
    return Code(f"{fence}{pad}{line}{pad}{fence}")
