"""docs/adding-a-target.md, taken at its word: its files make a target that runs."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import servers

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "adding-a-target.md"
FILE = re.compile(
    r"^`((?:src|templates)/[^`<]+)`\n\n```python\n(.*?)^```$", re.M | re.S
)
SPEC = """\
schema_version = 1

[project]
name = "toyed"

[jobs.work]
handler = "tasks:work"

[jobs.work.payload]
n = "int"
"""


@pytest.fixture(scope="module")
def compiler(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """qgen with one more target: the page's files in their two folders, no more."""
    place = tmp_path_factory.mktemp("qgen")
    ignored = shutil.ignore_patterns("__pycache__")
    for folder in ("src", "templates", "schema"):
        shutil.copytree(ROOT / folder, place / folder, ignore=ignored)
    files = dict(FILE.findall(PAGE.read_text("utf-8")))
    assert {str(Path(path).parent) for path in files} == {
        "src/qgen/targets/toy",
        "templates/toy",
    }
    for path, text in files.items():
        (place / path).parent.mkdir(parents=True, exist_ok=True)
        (place / path).write_text(text, "utf-8")
    return place


def build(compiler: Path, folder: Path, target: str) -> dict[str, bytes]:
    """What is built for a target, without what the lock says of it."""
    folder.mkdir()
    (folder / "queue.toml").write_text(SPEC, "utf-8")
    command = [sys.executable, "-m", "qgen", "build", "queue.toml", "--target", target]
    env = os.environ | {"PYTHONPATH": str(compiler / "src")}
    made = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True)
    assert made.returncode == 0, made.stdout + made.stderr
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and not {"__pycache__", ".qgen"} & set(path.parts)
    }


def test_the_page_makes_a_target_that_runs(compiler: Path, tmp_path: Path) -> None:
    """It is listed and built, and its worker runs jobs that were enqueued."""
    folder = tmp_path / "toyed"
    build(compiler, folder, "toy")
    handler = "def work(job, payload):\n    return payload.n + 1\n"
    (folder / "tasks.py").write_text(handler, "utf-8")
    with servers.redis() as redis:
        env = os.environ | {
            "PYTHONPATH": os.pathsep.join((str(folder), str(folder / "src"))),
            "DATABASE_URL": f"sqlite:///{folder / 'record.db'}",
            "REDIS_URL": redis.url,
        }

        def run(*args: str) -> str:
            command = [sys.executable, "-m", "toyed_queue", *args]
            made = subprocess.run(
                command, cwd=folder, env=env, capture_output=True, text=True, timeout=60
            )
            assert made.returncode == 0, made.stdout + made.stderr
            return made.stdout

        run("migrate")
        ids = [
            json.loads(run("enqueue", "work", json.dumps({"n": n}), "--json"))["id"]
            for n in range(3)
        ]
        run("worker", "--burst")
        rows = [json.loads(run("show", id_, "--json")) for id_ in ids]
    assert [(row["state"], row["result"]) for row in rows] == [
        ("completed", n + 1) for n in range(3)
    ]


@pytest.mark.parametrize("target", ["celery", "rq"])
def test_two_targets_differ_in_their_overlays_alone(
    compiler: Path, tmp_path: Path, target: str
) -> None:
    """Beside the overlay's files: the plan, the requirements, the stop period, the lock."""
    one = build(compiler, tmp_path / "one", "arq")
    two = build(compiler, tmp_path / "two", target)
    differ = {
        path for path in one.keys() | two.keys() if one.get(path) != two.get(path)
    }
    overlays = {
        path.relative_to(ROOT / "templates" / folder).as_posix().removesuffix(".j2")
        for folder in ("arq", target, "forking")
        for path in (ROOT / "templates" / folder).rglob("*")
        if path.suffix in (".py", ".j2")
    }
    rendered = {"QUEUE.md", "requirements.txt", "qgen.lock", "compose.yaml"}
    for path in differ:
        _, _, inner = path.rpartition("toyed_queue/")
        name = f"tests/{inner}" if path.startswith("tests/") else inner
        assert name in overlays or Path(path).name in rendered, path
