"""Take each guarantee out of the engine; the test that its mutant names must fail.

    python tests/mutants/run.py [NAME ...]
    QGEN_TEST_CELL=rq-fork python tests/mutants/run.py      on another backend

A mutant is a patch in this folder.  First every named test must pass on the engine as
it is; then each patch is applied to a copy of the project and its tests are run there,
in a process of their own.  Killed: every one of them fails by an assertion.  An error
(of the collection, an import, a fixture) kills nothing: the mutant is broken.  A test
that is of other backends alone (`cells.of`) is left out, and a mutant with no other, or
whose line `cells` names no cell or target of this run.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
ROOT = FOLDER.parents[1]
COPIED = ("src", "templates", "schema", "tests", "examples", "pyproject.toml")
AT_ONCE = 2
LIMIT = 600  # seconds a mutant's tests may take

KILLED, SURVIVED = "killed", "SURVIVED"
NO_PATCH, BROKEN = "DOES NOT APPLY", "BROKEN"
ELSEWHERE = "of other cells"
CELL = os.environ.get("QGEN_TEST_CELL", "arq")


@dataclass(frozen=True)
class Mutant:
    """A patch, what it takes out, and the tests that notice."""

    path: Path
    guarantee: str
    dialects: tuple[str, ...]
    tests: tuple[str, ...]
    cells: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return self.path.stem

    @classmethod
    def read(cls, path: Path) -> Mutant:
        """A patch's header: `key: value` lines up to the first line of the diff."""
        header: dict[str, str] = {}
        for line in path.read_text("utf-8").splitlines():
            if line.startswith("diff "):
                break
            key, found, value = line.partition(": ")
            if found and not line.startswith(" "):
                header[key] = value.strip()
        dialects = tuple(header["dialects"].split())
        tests = dict.fromkeys(
            test.replace("{dialect}", dialect)
            for test in header["test"].split()
            for dialect in dialects
        )
        cells = tuple(header.get("cells", "").split())
        return cls(path, header["guarantee"], dialects, tuple(tests), cells)

    def without(self, elsewhere: set[str]) -> Mutant:
        """With those of its tests that are of this cell."""
        foreign = self.cells and not {CELL, CELL.partition("-")[0]} & set(self.cells)
        left = [t for t in self.tests if not foreign and t not in elsewhere]
        return replace(self, tests=tuple(left))


@dataclass(frozen=True)
class Verdict:
    """What became of a mutant, and what pytest said if that was not its end."""

    mutant: Mutant
    word: str
    seconds: float
    said: str = ""


def mutants(names: Sequence[str] = ()) -> list[Mutant]:
    """Those of the folder, or those named."""
    found = [Mutant.read(path) for path in sorted(FOLDER.glob("*.patch"))]
    unknown = set(names) - {mutant.name for mutant in found}
    if unknown:
        raise SystemExit(f"there is no mutant {', '.join(sorted(unknown))}")
    return [mutant for mutant in found if not names or mutant.name in names]


def apply(patch: Path, folder: Path, *options: str) -> str:
    """Patch a copy of the project; what git said if it cannot."""
    # Little context, so that an edit beside it does not matter.
    command = ["git", "apply", "-C1", "--whitespace=nowarn", *options, str(patch)]
    # The copy is no repository, and must not be taken for a part of one.
    env = os.environ | {"GIT_CEILING_DIRECTORIES": str(folder.parent)}
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True)
    return "" if done.returncode == 0 else done.stderr.strip() or "git failed"


def copy(folder: Path) -> None:
    """The project without what is made from it."""
    ignored = shutil.ignore_patterns("__pycache__", ".*", "*.egg-info")
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=ignored)
        else:
            shutil.copy2(source, folder / name)


def pytest(
    root: Path, report: Path, tests: Iterable[str], *options: str
) -> tuple[int, str]:
    """Run tests of the project at `root`: exit code, and what was said."""
    command = [sys.executable, "-m", "pytest", "-q", "--tb=short", *options]
    # `python -m qgen` of the tests must be the copy's, wherever qgen is installed.
    env = os.environ | {"PYTHONPATH": str(root / "src")}
    try:
        done = subprocess.run(
            [*command, f"--junitxml={report}", *tests],
            cwd=root,
            env=env,
            capture_output=True,
            text=True,
            timeout=LIMIT,
        )
    except subprocess.TimeoutExpired:
        return 1, f"no answer within {LIMIT} s"
    return done.returncode, done.stdout[-4000:] + done.stderr[-2000:]


def outcomes(report: Path) -> list[str]:
    """One word per test that ran: `passed`, `asserted`, or `error`."""
    words: list[str] = []
    for case in ET.parse(report).getroot().iter("testcase"):
        failures = case.findall("failure")
        asserted = all(_is_assertion(f.get("message", "")) for f in failures)
        if case.findall("error") or not asserted or case.findall("skipped"):
            words.append("error")
        else:
            words.append("asserted" if failures else "passed")
    return words


def left_out(report: Path) -> set[str]:
    """The tests that were skipped, as pytest is told of them."""
    cases = ET.parse(report).getroot().iter("testcase")
    return {
        f"{case.get('classname', '').replace('.', '/')}.py::{case.get('name')}"
        for case in cases
        if case.find("skipped") is not None
    }


def _is_assertion(message: str) -> bool:
    return message.startswith(("AssertionError", "assert ", "Failed: DID NOT RAISE"))


def judge(mutant: Mutant) -> Verdict:
    """One mutant, in a copy of its own."""
    begun = time.monotonic()

    def verdict(word: str, said: str = "") -> Verdict:
        return Verdict(mutant, word, time.monotonic() - begun, said)

    if not mutant.tests:
        return verdict(ELSEWHERE)
    with tempfile.TemporaryDirectory(prefix="qgen-mutant-") as place:
        folder = Path(place).resolve() / "project"
        folder.mkdir()
        copy(folder)
        error = apply(mutant.path, folder)
        if error:
            return verdict(NO_PATCH, error)
        report = folder / "report.xml"
        _, said = pytest(folder, report, mutant.tests)
        words = outcomes(report) if report.exists() else []
    if len(words) != len(mutant.tests) or "error" in words:
        return verdict(BROKEN, said)
    if "passed" in words:
        return verdict(SURVIVED, said)
    return verdict(KILLED)


def here(chosen: Sequence[Mutant]) -> list[Mutant] | None:
    """The mutants, each with its tests of this cell; None if one of them fails already."""
    tests = sorted({test for mutant in chosen for test in mutant.tests})
    print(f"mutants: {len(tests)} tests on the engine as it is", flush=True)
    with tempfile.TemporaryDirectory(prefix="qgen-mutant-") as place:
        report = Path(place) / "report.xml"
        code, said = pytest(ROOT, report, tests, "-n", str(AT_ONCE))
        elsewhere = set() if code else left_out(report)
    if code:
        print(said)
        print("mutants: the named tests must pass first")
        return None
    return [one.without(elsewhere) for one in chosen]


def show(verdict: Verdict) -> None:
    mutant = verdict.mutant
    what = f"{mutant.name:<28} {verdict.word:<15} {verdict.seconds:5.1f} s"
    print(f"{what}  {mutant.guarantee}", flush=True)
    if verdict.said:
        print("    " + "\n    ".join(verdict.said.splitlines()), flush=True)


def main(names: Sequence[str]) -> int:
    chosen = here(mutants(names))
    if chosen is None:
        return 1
    alive = none = 0
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for verdict in pool.map(judge, chosen):
            show(verdict)
            none += verdict.word == ELSEWHERE
            alive += verdict.word not in (KILLED, ELSEWHERE)
    ran = len(chosen) - none
    print(f"mutants: {ran - alive} of {ran} killed, {none} of other cells")
    return 1 if alive else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
