"""The files that are printed from the sources; run this to print them again."""

import sys
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "src"))

from qgen.diagnostics import page as diagnostics_page  # noqa: E402
from qgen.diagnostics import schema as diagnostics_schema  # noqa: E402
from qgen.spec import page as spec_page  # noqa: E402
from qgen.spec import schema as spec_schema  # noqa: E402

PRINTED: dict[str, Callable[[], str]] = {
    "docs/diagnostics.md": diagnostics_page.page,
    "docs/spec.md": spec_page.page,
    "schema/v1/diagnostics.schema.json": diagnostics_schema.text,
    "schema/v1/queue.schema.json": spec_schema.text,
}

if __name__ == "__main__":
    for path, text in PRINTED.items():
        (ROOT / path).write_text(text(), encoding="utf-8", newline="\n")
        print(path)
