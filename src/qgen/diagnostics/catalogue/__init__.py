"""The catalogue: every code there is, in one module per kind.

It feeds ``qgen explain``, docs/diagnostics.md and SARIF.  To add a code, write it down
in the module of its kind, with an example; a test demands that the example fires it.
(Codes of ``files`` are about a disk: tests/emit/test_outcomes.py fires each.)
"""

from __future__ import annotations

from types import ModuleType
from typing import Final

from qgen.diagnostics.catalogue import (
    files,
    keys,
    later,
    names,
    relations,
    text,
    values,
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
)


def codes_of(module: ModuleType) -> list[Code]:
    """The codes that a module defines, by number."""
    found = [each for each in vars(module).values() if isinstance(each, Code)]
    return sorted(found, key=lambda each: each.code)


ALL: Final[dict[str, Code]] = {
    each.code: each for _, module in KINDS for each in codes_of(module)
}
