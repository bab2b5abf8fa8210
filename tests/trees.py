"""Build every tree, target by dialect, and type-check each of them strictly.

    python tests/trees.py [NAME ...]        such as arq-sqlite

A tree is what `qgen build` makes of examples/support/queue.toml with the dialect
exchanged. The contract between the engine's overlays is that all of them pass.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SPEC = ROOT / "examples" / "support" / "queue.toml"
TARGETS = ("arq", "rq", "celery")
DIALECTS = ("sqlite", "postgresql")


def names() -> list[str]:
    """The trees that can be built: those whose overlays exist and hold something."""
    templates = ROOT / "templates"
    return [
        f"{target}-{dialect}"
        for target in TARGETS
        for dialect in DIALECTS
        if list((templates / target).glob("*.py"))
        and list((templates / dialect).glob("*.py"))
    ]


def with_dialect(spec: str, dialect: str) -> str:
    """The same spec for another database."""
    line = f'dialect = "{dialect}"'
    spec, found = re.subn(r'(?m)^dialect = "\w+"', line, spec)
    if not found:
        spec, found = re.subn(r"(?m)^\[record\]$", f"[record]\n{line}", spec)
    return spec if found else f"{spec}\n[record]\n{line}\n"


def build(name: str, folder: Path, spec: str | None = None) -> Path:
    """Build a tree into an empty folder and return the generated package's folder."""
    target, dialect = name.split("-")
    text = SPEC.read_text("utf-8") if spec is None else spec
    (folder / "queue.toml").write_text(with_dialect(text, dialect), "utf-8")
    command = [sys.executable, "-m", "qgen", "build", "queue.toml", "--target", target]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if done.returncode:
        print(done.stdout, done.stderr, sep="", file=sys.stderr)
        done.check_returncode()
    return package(folder)


def package(folder: Path) -> Path:
    """The generated package of a tree."""
    (found,) = {path.parent for path in folder.rglob("definitions.py")}
    return found


def typecheck(name: str, folder: Path, package: Path) -> int:
    """mypy's exit code for the package and its suite."""
    suites = [str(path) for path in folder.glob("tests/*") if path.is_dir()]
    command = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary"]
    command += ["--config-file", str(ROOT / "pyproject.toml")]
    command += ["--cache-dir", str(ROOT / ".mypy_cache" / name)]
    env = os.environ | {"MYPYPATH": str(package.parent)}
    return subprocess.run(
        [*command, str(package), *suites], cwd=folder, env=env
    ).returncode


def main(wanted: list[str]) -> int:
    if not SPEC.exists():
        print(f"trees: {SPEC.relative_to(ROOT)} does not exist", file=sys.stderr)
        return 1
    failed = 0
    for name in wanted or names():
        with tempfile.TemporaryDirectory(prefix=f"qgen-{name}-") as place:
            folder = Path(place).resolve()
            try:
                code = typecheck(name, folder, build(name, folder))
            except subprocess.CalledProcessError as error:
                code = error.returncode
        print(f"{name}: {'failed' if code else 'ok'}", flush=True)
        failed = failed or code
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
