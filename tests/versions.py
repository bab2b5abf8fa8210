"""Each backend's newest version and the oldest that is supported, with the suite.

    python tests/versions.py [NAME ...]        such as rq-2.11

For each: an environment of its own (arq and a newer celery cannot share one), the
example built for that backend, and its generated suite, which starts real servers.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import venv
from pathlib import Path
from typing import Final

import trees

ROOT = Path(__file__).resolve().parents[1]

# Name: the backend, and the versions to install.
VERSIONS: Final = {
    "arq-0.26": ("arq", ["arq==0.26.*"]),
    "arq-0.28": ("arq", ["arq==0.28.*"]),
    "celery-5.5": ("celery", ["celery[redis]==5.5.*"]),
    "celery-5.6": ("celery", ["celery[redis]==5.6.*"]),
    "celery-5.7": ("celery", ["celery[redis]==5.7.*"]),
    "rq-2.11": ("rq", ["rq==2.11.*", "redis==5.*"]),
    "rq-2.12": ("rq", ["rq==2.12.*", "redis==6.*"]),
    "rq-3.0": ("rq", ["rq==3.0.*", "redis==8.*"]),
}


def passes(name: str) -> bool:
    """Whether the generated suite passes with these versions."""
    target, pins = VERSIONS[name]
    with tempfile.TemporaryDirectory(prefix=f"qgen-{name}-") as place:
        folder = Path(place).resolve()
        example = ROOT / "examples" / "support" / "src" / "support"
        shutil.copytree(example, folder / "src" / "support")
        package = trees.build(f"{target}-sqlite", folder)
        venv.create(folder / "venv", with_pip=True)
        python = folder / "venv" / "bin" / "python"
        needs = [package / "requirements.txt", folder / "tests" / package.name]
        install = [python, "-m", "pip", "install", "-q", *pins, "-r", needs[0]]
        install += ["-r", needs[1] / "requirements.txt"]
        if subprocess.run(install).returncode:
            return False
        suite = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", needs[1]]
        return subprocess.run(suite, cwd=folder).returncode == 0


def main(wanted: list[str]) -> int:
    failed = 0
    for name in wanted or VERSIONS:
        fine = passes(name)
        print(f"versions: {name}: {'ok' if fine else 'FAILED'}", flush=True)
        failed |= not fine
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
