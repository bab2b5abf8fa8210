"""Build every tree, target by dialect, and type-check each of them strictly.

    python tests/trees.py [NAME ...]        such as arq-sqlite

A tree is what `qgen build` makes of examples/support/queue.toml with the dialect
exchanged and a job more. The contract between the engine's overlays is that all of them
pass, and so does what the handlers' stubs show of paying, taken out of its comments.
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
# The other kind of paid job: the example has none whose handler is the call.
WHOLE = """
[jobs.whole_call]
queue = "replies"
timeout = "20s"
agent = "writer"
max_cost = "0.05"
billing = "attempt"
"""
# What a stub's call names beside the package: its reader's own.
THEIRS = "from typing import Any\n\nclient: Any\nprice_of: Any\n"
_SHOWN = re.compile(r"^    # (?! *[A-Z])", re.MULTILINE)


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


def uncommented(stub: str) -> str:
    """A stub with the statements that it shows in comments; its sentences stay."""
    return _SHOWN.sub("    ", stub)


def shown(folder: Path, package: Path) -> Path:
    """The tree's handlers as a reader takes them who pays as they show."""
    (module,) = {
        path for path in folder.rglob("handlers.py") if package not in path.parents
    }
    text = uncommented(module.read_text("utf-8"))
    for call in ("    answer = await job.paid_call(\n", "    job.charge("):
        if call not in text:
            raise SystemExit(f"trees: the handlers show no {call.strip()}")
    place = folder / "shown.py"
    place.write_text(text.replace("\nfrom ", f"\n{THEIRS}from ", 1), "utf-8")
    return place


def typecheck(name: str, folder: Path, package: Path) -> int:
    """mypy's exit code for the package, its suite, and what its handlers show."""
    suites = [str(path) for path in folder.glob("tests/*") if path.is_dir()]
    command = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary"]
    command += ["--config-file", str(ROOT / "pyproject.toml")]
    command += ["--cache-dir", str(ROOT / ".mypy_cache" / name)]
    env = os.environ | {"MYPYPATH": str(package.parent)}
    return subprocess.run(
        [*command, str(package), *suites, str(shown(folder, package))],
        cwd=folder,
        env=env,
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
                spec = SPEC.read_text("utf-8") + WHOLE
                code = typecheck(name, folder, build(name, folder, spec))
            except subprocess.CalledProcessError as error:
                code = error.returncode
        print(f"{name}: {'failed' if code else 'ok'}", flush=True)
        failed = failed or code
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
