"""The files that are kept in the repository although they can be made again.

`python dev.py regen` writes them and shows what changed; a test says when it is due.
"""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from qgen import overlays
from qgen.compile import compile
from qgen.render import is_sql
from qgen.signature import is_intact
from qgen.targets import TARGETS

ROOT = Path(__file__).parents[2]
TEMPLATES = ROOT / "templates"
CASES = ROOT / "tests" / "cases"
EXAMPLE = ROOT / "examples" / "support" / "queue.toml"


def engine() -> Iterator[tuple[Path, str]]:
    """Every engine file with its signature as it must be."""
    overlays.engine.cache_clear()
    for folder in ("package", "sqlite", "postgresql", "forking", *TARGETS, "tests"):
        for source in overlays.sources(folder):
            if not source.is_rendered:
                yield TEMPLATES / source.template, overlays.engine(source.template)


def cases() -> list[Path]:
    """The cases that say what is built: those with a folder ``expected``."""
    return sorted(path.parent for path in CASES.glob("*/expected"))


def built(case: Path) -> dict[Path, str]:
    """What a case's spec makes: the rendered files that hold something of the spec.

    SQL holds its table's name only and stands in the templates; it is left out.
    """
    target = json.loads((case / "args.json").read_text("utf-8"))[-1]
    spec = (case / "queue.toml").read_bytes()
    done = compile(spec, "queue.toml", target)
    assert not [each for each in done.diagnostics if each.is_error]
    return {
        case / "expected" / file.path: file.text
        for file in done.files
        if file.is_rendered and not is_sql(f"{file.path}.j2")
    }


def on_disk(case: Path) -> set[Path]:
    """What the case expects now."""
    return {path for path in (case / "expected").rglob("*") if path.is_file()}


def unsigned() -> list[Path]:
    """Engine files whose signature is missing or old."""
    return [path for path, _ in engine() if not is_intact(path.read_text("utf-8"))]


def build_example() -> int:
    """Build the checked-in example where it stands."""
    if not EXAMPLE.exists():
        return 0
    command = [sys.executable, "-m", "qgen", "build", "queue.toml", "--quiet"]
    return subprocess.run(command, cwd=EXAMPLE.parent).returncode
