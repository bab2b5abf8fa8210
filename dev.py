#!/usr/bin/env python3
"""The project's commands, from nothing but Python 3.11 or newer.

    python3 dev.py demo       kill workers, wipe Redis, lose nothing
    python3 dev.py test       the whole suite (with arguments: just pytest with them)
    python3 dev.py check      ruff, black and mypy on everything, built trees included
    python3 dev.py regen      rewrite the golden files and show what changed
    python3 dev.py bench      measurements: run, memory, backlog, plan, compile
    python3 dev.py mutants    take each guarantee out; the test it names must fail
    python3 dev.py matrix     the suite on every Python 3.11 to 3.13 found here, and the
                              generated one on each backend's oldest and newest version

The first use makes the environment `.venv` (QGEN_VENV names another folder). It is
made again when the project's dependencies or the Python change, or when it is broken.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import subprocess
import sys
import venv
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent
VENV = ROOT / os.environ.get("QGEN_VENV", ".venv")
BIN = VENV / ("Scripts" if os.name == "nt" else "bin")
PYTHON = BIN / ("python.exe" if os.name == "nt" else "python")
STAMP = VENV / "qgen-stamp"
PYTHONS = ((3, 11), (3, 12), (3, 13))
CODE = ["src", "tests", "templates", "bench", "examples", "dev.py"]


# --- the environment ------------------------------------------------------------


def python_stamp() -> str:
    """What an environment is tied to for good: this Python and this place."""
    return f"{sys.version} {ROOT}".replace("\n", " ")


def package_stamp() -> str:
    """What its packages follow from. (The tools' settings in pyproject.toml do not.)"""
    import tomllib  # since 3.11

    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    parts = settings.get("project"), settings.get("build-system")
    lock = (ROOT / "requirements.lock").read_bytes()
    return hashlib.sha256(repr(parts).encode() + lock).hexdigest()


def has_python() -> bool:
    """Stamped, so it was whole once; made by this Python; and it still runs."""
    try:
        stamped = STAMP.read_text("utf-8").splitlines()[0]
    except (OSError, IndexError):
        return False
    return stamped == python_stamp() and run([PYTHON, "-c", ""], quiet=True) == 0


def has_packages() -> bool:
    return STAMP.read_text("utf-8").splitlines()[1:] == [package_stamp()]


@contextlib.contextmanager
def alone() -> Iterator[None]:
    """Two first uses at once must not make the same environment: the second waits."""
    with open(ROOT / ".dev.lock", "w") as lock:
        if os.name == "nt":
            import msvcrt

            msvcrt.locking(lock.fileno(), msvcrt.LK_LOCK, 1)  # type: ignore[attr-defined]
        else:
            import fcntl

            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def ensure_environment() -> None:
    """Make or complete the environment; leave with pip's exit code if that fails.

    New requirements are installed over the old ones, so a test run that uses the
    environment at this moment goes on. A broken or half-made one is made anew.
    """
    if has_python() and has_packages():
        return
    with alone():
        if not has_python():
            print(f"making {VENV.name} (once, about half a minute)", file=sys.stderr)
            shutil.rmtree(VENV, ignore_errors=True)
            venv.create(VENV, with_pip=True, clear=True)
        elif has_packages():
            return  # somebody else was faster
        lock = ROOT / "requirements.lock"
        pip = [str(PYTHON), "-m", "pip", "--quiet", "--disable-pip-version-check"]
        code = run([*pip, "install", "-c", str(lock), "-e", f"{ROOT}[test,bench]"])
        if code:
            sys.exit(code)
        STAMP.write_text(f"{python_stamp()}\n{package_stamp()}\n", "utf-8")


def run(
    command: Sequence[str | Path],
    *,
    quiet: bool = False,
    env: dict[str, str] | None = None,
) -> int:
    """Run a command in the project's folder and return its exit code."""
    out = subprocess.DEVNULL if quiet else None
    try:
        return subprocess.run(
            command, cwd=ROOT, env=env, stdout=out, stderr=out
        ).returncode
    except OSError as error:
        if not quiet:
            print(f"dev.py: {error}", file=sys.stderr)
        return 127
    except KeyboardInterrupt:
        return 130


def python(*args: str) -> int:
    """Run the environment's Python."""
    ensure_environment()
    return run([PYTHON, *args])


# --- the commands ---------------------------------------------------------------


def test(args: list[str]) -> int:
    """Everything in parallel, then the tests marked `serial` one by one.

    With arguments they go to pytest as they are.
    """
    # The tests start qgen some thousand times: what Python compiles must be kept.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    if args:
        return python("-m", "pytest", *args)
    # Most tests wait for real processes: five at a time keep two cores busy.
    many = ("-n", "5", "--dist", "worksteal")
    code = python("-m", "pytest", "-q", *many, "-m", "not serial")
    if code == 0 and any(
        b"pytest.mark.serial" in path.read_bytes()
        for path in (ROOT / "tests").rglob("test_*.py")
        if path.name != "test_dev.py"
    ):
        code = python("-m", "pytest", "-q", "-m", "serial")
    return code


def check(args: list[str]) -> int:
    """Lint, format and types; every step runs, the first failure is the exit code."""
    code = [path for path in CODE if (ROOT / path).exists()]
    steps = [
        ["-m", "ruff", "check", *code],
        ["-m", "black", "--check", "--quiet", "--diff", *code],
        ["-m", "mypy", "--strict", "src/qgen"],
        ["-m", "mypy", "--strict", "dev.py", "templates/tests/servers.py", "bench"],
        ["-m", "mypy", "--strict", "examples/demo.py"],
        ["tests/trees.py", *args],
    ]
    failed = 0
    for step in steps:
        print("dev.py:", " ".join(step), file=sys.stderr, flush=True)
        failed = python(*step) or failed
    return failed


def matrix(args: list[str]) -> int:
    """The suite on each Python that is found, and the generated one on each backend's
    oldest and newest version; each in an environment of its own."""
    failed, found = 0, 0
    for version in PYTHONS:
        name = ".".join(map(str, version))
        interpreter = find_python(name)
        if interpreter is None:
            print(f"dev.py: Python {name}: not found, skipped", file=sys.stderr)
            continue
        found += 1
        print(f"dev.py: Python {name}: {interpreter}", file=sys.stderr, flush=True)
        env = os.environ | {"QGEN_VENV": f".venv-{name}"}
        code = run([interpreter, __file__, "test", *args], env=env)
        print(f"dev.py: Python {name}: {'failed' if code else 'passed'}", flush=True)
        failed = failed or code
    failed = python("tests/versions.py") or failed
    return failed if found else 1


def find_python(name: str) -> str | None:
    """An interpreter of this version: on PATH, or among pyenv's."""
    home = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    candidates = [
        shutil.which(f"python{name}"),
        *sorted(map(str, home.glob(f"versions/{name}.*/bin/python"))),
        sys.executable,
    ]
    ask = "import sys; sys.exit('%d.%d' % sys.version_info[:2] != sys.argv[1])"
    for candidate in candidates:
        if candidate and run([candidate, "-c", ask, name], quiet=True) == 0:
            return candidate
    return None


COMMANDS = {
    "demo": lambda args: python("examples/demo.py", *args),
    "test": test,
    "check": check,
    "regen": lambda args: python("tests/regen.py", *args),
    "bench": lambda args: python("-m", "bench", *args),
    "mutants": lambda args: python("tests/mutants/run.py", *args),
    "matrix": matrix,
}


def main(args: list[str]) -> int:
    if sys.version_info < (3, 11):  # noqa: UP036 (who runs this may have an older one)
        print("qgen needs Python 3.11 or newer", file=sys.stderr)
        return 2
    if not args or args[0] not in COMMANDS:
        print(__doc__, file=sys.stderr)
        return 2
    return COMMANDS[args[0]](args[1:])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
