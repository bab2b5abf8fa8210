"""The catalogue as text: one code for ``qgen explain``, all for docs/diagnostics.md."""

from __future__ import annotations

import textwrap

from qgen.diagnostics.catalogue import KINDS, codes_of
from qgen.diagnostics.catalogue.code import Code

INTRODUCTION = """\
# Diagnostics

Every problem that qgen reports has a code. `qgen explain QG401` prints one entry of this
page. A code keeps its meaning from version to version; messages may be reworded.

Errors stop a build. Warnings do not, unless `--strict` is given.
"""


def explanation(code: Code) -> str:
    """One code for a terminal."""
    parts = [f"{code.code} ({code.severity}): {code.title}", wrapped(code.why)]
    if code.example:
        lines = shown_example(code).strip().splitlines()
        indented = "\n".join(f"    {line}".rstrip() for line in lines)
        parts.append(f"This draws it:\n\n{indented}")
    return "\n\n".join(parts) + "\n"


def page() -> str:
    """docs/diagnostics.md."""
    parts = [INTRODUCTION]
    for title, module in KINDS:
        parts.append(f"## {title}\n")
        for code in codes_of(module):
            parts.append(f"### {code.code}\n\n**{code.title}** ({code.severity})\n")
            parts.append(wrapped(code.why) + "\n")
            if code.example:
                parts.append(f"```toml\n{shown_example(code).strip()}\n```\n")
    return "\n".join(parts)


def wrapped(text: str) -> str:
    """A paragraph of lines that a page can hold."""
    return textwrap.fill(text, 88, break_on_hyphens=False, break_long_words=False)


def shown_example(code: Code) -> str:
    """The example as a page can show it: short, its invisible characters named."""
    lines = [
        line if len(line) <= 88 else f"{line[:80]} …"
        for line in code.example.replace("\r", "<CR>")
        .replace("\ufeff", "<U+FEFF>")
        .split("\n")
    ]
    return "\n".join(lines)
