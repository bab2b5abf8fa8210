"""The same spec gives the same bytes, wherever and however it is compiled."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SPEC = ROOT / "tests" / "cases" / "built_rich" / "queue.toml"
# Prints one digest over every path and text that a spec makes.
DIGEST = """
import hashlib, pathlib, sys
from qgen.compile import compile
done = compile(pathlib.Path(sys.argv[1]).read_bytes(), "queue.toml")
assert done.model, done.diagnostics
parts = [f"{f.path}\\0{f.kind}\\0{f.text}\\0" for f in done.files]
print(hashlib.sha256("".join(parts).encode()).hexdigest())
"""
PATHS = os.pathsep.join(sys.path)


def digest(spec: Path, python: str = sys.executable, paths: str = PATHS, **env: str):
    done = subprocess.run(
        [python, "-c", DIGEST, str(spec)],
        capture_output=True,
        text=True,
        cwd=spec.parent,
        env=os.environ | {"PYTHONPATH": paths} | env,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def expected():
    return digest(SPEC)


@pytest.mark.parametrize(
    "env",
    [
        {"PYTHONHASHSEED": "1"},
        {"PYTHONHASHSEED": "77"},
        {"TZ": "Asia/Kathmandu"},
        {"LC_ALL": "C", "PYTHONUTF8": "0"},
        {"LC_ALL": "tr_TR.UTF-8", "LANG": "tr_TR.UTF-8"},
        {"HOME": "/nonexistent", "COLUMNS": "20", "FORCE_COLOR": "1"},
    ],
    ids=lambda env: next(iter(env.items()))[0]
    + next(iter(env.items()))[1].split(".")[0],
)
def test_the_environment_changes_nothing(expected, env):
    assert digest(SPEC, **env) == expected


def test_the_folder_changes_nothing(expected, tmp_path):
    place = tmp_path / "a folder with spaces and ünïcode"
    place.mkdir()
    shutil.copy(SPEC, place / "queue.toml")
    assert digest(place / "queue.toml") == expected


@pytest.mark.parametrize(
    "spelt",
    [
        lambda text: text.replace(b"\n", b"\r\n"),
        lambda text: b"\xef\xbb\xbf" + text,
        lambda text: b"# a comment\n" + text.replace(b" = ", b"   =   "),
    ],
    ids=["crlf", "bom", "spaces"],
)
def test_how_the_file_is_spelt_changes_nothing(expected, tmp_path, spelt):
    spec = tmp_path / "queue.toml"
    spec.write_bytes(spelt(SPEC.read_bytes()))
    assert digest(spec) == expected


def test_the_order_of_tables_and_keys_changes_nothing(expected, tmp_path):
    head, *tables = SPEC.read_text("utf-8").split("\n\n[")
    turned = []
    for table in reversed(tables):
        title, *keys = table.strip("\n").split("\n")
        turned.append("\n".join([title, *reversed([key for key in keys if key])]))
    spec = tmp_path / "queue.toml"
    spec.write_text("\n\n[".join([head, *turned]) + "\n", "utf-8")
    assert spec.read_bytes() != SPEC.read_bytes()
    assert digest(spec) == expected


def pythons() -> list[str]:
    """Other interpreters that qgen supports: installed ones, those of `dev.py matrix`,
    and what QGEN_PYTHONS lists."""
    home = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    found = [*home.glob("versions/3.1[123].*/bin/python")]
    found += [*ROOT.glob(".venv-3.1[123]/bin/python")]
    found += map(Path, filter(None, os.environ.get("QGEN_PYTHONS", "").split(":")))
    found += [Path(p) for v in (11, 12, 13) if (p := shutil.which(f"python3.{v}"))]
    return sorted({str(path) for path in found})


@pytest.mark.parametrize("python", pythons())
def test_the_python_changes_nothing(expected, python):
    """Pure-Python libraries are lent from here; compiled ones must be the other's own."""
    needs = "import click, jinja2, jsonschema, pydantic, tzdata"
    if subprocess.run([python, "-c", needs], capture_output=True).returncode:
        pytest.skip("without qgen's libraries")
    assert digest(SPEC, python, str(ROOT / "src")) == expected
