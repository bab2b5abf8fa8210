"""The catalogue: every code there is, in one module per kind.

It feeds ``qgen explain``, docs/diagnostics.md and SARIF.  To add a code, write it down
in the module of its kind, with an example; a test demands that the example fires it.
(Codes of ``files``, ``approved`` and ``waiting`` are about a disk: tests/emit fires
each.)
"""

from __future__ import annotations

from types import ModuleType
from typing import Final

from qgen.diagnostics.catalogue import (
    approved,
    files,
    keys,
    later,
    names,
    relations,
    text,
    values,
    waiting,
)
from qgen.diagnostics.catalogue.code import Code

KINDS: Final[tuple[tuple[str, ModuleType], ...]] = (
    ("The text of the file", text),
    ("Keys", keys),
    ("Values", values),
    ("Names", names),
    ("Relations between keys", relations),
    ("Not built yet", later),
    ("Generated files", files),
    ("Approvals", approved),
    ("Rows that wait", waiting),
)


def codes_of(module: ModuleType) -> list[Code]:
    """The codes that a module defines, by number."""
    found = [each for each in vars(module).values() if isinstance(each, Code)]
    return sorted(found, key=lambda each: each.code)


ALL: Final[dict[str, Code]] = {
    each.code: each for _, module in KINDS for each in codes_of(module)
}
