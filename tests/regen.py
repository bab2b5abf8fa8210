"""Write again what can be made again, and show what changed.

    python tests/regen.py

Signatures of the engine's files, the golden files of tests/cases, the printed pages
and schemas, and the checked-in example. Review the diff like code.
"""

from __future__ import annotations

import difflib
import sys
from collections.abc import Iterator
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1] / "src")]

from emit import golden  # noqa: E402
from spec.printed import PRINTED  # noqa: E402


def wanted() -> Iterator[tuple[Path, str]]:
    """Every kept file and its text; the engine first, since the rest shows it."""
    yield from golden.engine()
    for path, text in PRINTED.items():
        yield golden.ROOT / path, text()
    for case in golden.cases():
        yield from golden.built(case).items()


def write(path: Path, text: str) -> bool:
    """Write a file that is not so yet, and show the difference."""
    old = path.read_bytes().decode() if path.exists() else ""
    if old == text:
        return False
    name = str(path.relative_to(golden.ROOT))
    lines = difflib.unified_diff(
        old.splitlines(), text.splitlines(), name, name, lineterm="", n=1
    )
    print("\n".join(lines))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode())
    return True


def main() -> int:
    changed = sum(write(path, text) for path, text in wanted())
    for case in golden.cases():
        for extra in golden.on_disk(case) - set(golden.built(case)):
            print(f"removed {extra.relative_to(golden.ROOT)}")
            extra.unlink()
            changed += 1
    print(f"regen: {changed} changed", file=sys.stderr)
    return golden.build_example()


if __name__ == "__main__":
    sys.exit(main())
