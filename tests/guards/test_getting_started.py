"""docs/getting-started.md, followed to the letter in an empty folder.

Of the page's fences, `console` ones are typed line by line into one bash, and those with
`file=` are written to that file.  `sh` ones are what is there already: the environment
and the server.  One thing is changed: the address of Redis, which is our own server's.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

import pytest

import servers

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "getting-started.md"

# The address that the page tells the reader to start Redis at.
ADDRESS = "redis://localhost:6379/0"

# What only looks: a person would look again until it is as the page says.
LOOKS = re.compile(r"(grep|python -m hello_queue (list|dead-letters$|status|health)) ?")
PATIENCE = 60.0

FENCE = re.compile(r"^```(\w+)(?: file=(\S+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass
class Command:
    """A line that is typed, and the lines that the page shows below it."""

    text: str
    shown: list[str] = field(default_factory=list)
    # The page goes on with `echo $?`: the exit code may be any.
    code_is_shown: bool = False


def commands(block: str) -> list[Command]:
    """The commands of a console block with what they print."""
    found: list[Command] = []
    for line in block.splitlines():
        if line.startswith("$ "):
            if line == "$ echo $?":
                found[-1].code_is_shown = True
            found.append(Command(line[2:]))
        else:
            found[-1].shown.append(line)
    return found


def differs(shown: list[str], printed: str) -> str | None:
    """The first shown line that was not printed, or a printed one that is not shown.

    Spaces count as one.  `…` is any text; a line `...` is any lines.
    """
    lines = [" ".join(line.split()) for line in printed.splitlines()]
    lines = [line for line in lines if line]
    at, loose = 0, False
    for line in (" ".join(line.split()) for line in shown):
        if line == "...":
            loose = True
            continue
        if not line:
            continue
        wanted = re.compile(".*".join(re.escape(part) for part in line.split("…")))
        while loose and at < len(lines) and not wanted.fullmatch(lines[at]):
            at += 1
        if at == len(lines) or not wanted.fullmatch(lines[at]):
            return f"the page shows: {line}"
        at, loose = at + 1, False
    if at < len(lines) and not loose:
        return f"the page does not show: {lines[at]}"
    return None


class Shell:
    """One bash from the first command to the last, as a terminal would be."""

    def __init__(self, folder: Path, env: dict[str, str]) -> None:
        self.folder = folder
        self._bash = subprocess.Popen(
            ["bash", "--noprofile", "--norc"],
            cwd=folder,
            env=env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Ends it with every worker that it started."""
        self._bash.kill()
        self._bash.wait()
        try:
            os.killpg(self._bash.pid, 9)
        except ProcessLookupError:
            pass

    def type(self, text: str) -> tuple[str, int]:
        """What a command prints, and its exit code; `$?` and `$!` stay as they were."""
        assert self._bash.stdin is not None and self._bash.stdout is not None
        mark = "---- the end of the command:"
        self._bash.stdin.write(f'{text}\ncode=$?; echo "{mark}$code"; (exit $code)\n')
        self._bash.stdin.flush()
        printed: list[str] = []
        for line in self._bash.stdout:
            before, found, code = line.partition(mark)
            if found:
                return "".join([*printed, before]), int(code)
            printed.append(line)
        raise AssertionError(f"bash ended at: {text}\n{''.join(printed)}")


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    """A bash in an empty folder; of the environment only what every program needs."""
    home, folder = tmp_path / "home", tmp_path / "empty"
    home.mkdir()
    folder.mkdir()
    env = {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "HOME": str(home),
        "LANG": "C.UTF-8",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONUNBUFFERED": "1",  # lines come as they would on a terminal
        # Everything is installed; nothing may be fetched into this environment.
        "PIP_NO_INDEX": "1",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "GIT_CONFIG_NOSYSTEM": "1",
    }
    for role in ("AUTHOR", "COMMITTER"):
        env |= {f"GIT_{role}_NAME": "Ada", f"GIT_{role}_EMAIL": "ada@example.org"}
    with Shell(folder, env) as shell:
        yield shell


def follow(shell: Shell, command: Command, address: str) -> None:
    """Types a command and compares; looks again where that is all it does."""
    until = time.monotonic() + (PATIENCE if LOOKS.match(command.text) else 0)
    while True:
        printed, code = shell.type(command.text.replace(ADDRESS, address))
        wrong = differs(command.shown, without_notices(printed))
        if wrong is None and code != 0 and not command.code_is_shown:
            wrong = f"it ended with {code}"
        if wrong is None:
            return
        if time.monotonic() > until:
            pytest.fail(f"$ {command.text}\n{printed}\n{wrong}")
        time.sleep(0.5)


def without_notices(printed: str) -> str:
    """Without bash's own line about a job that was killed."""
    lines = printed.splitlines()
    return "\n".join(x for x in lines if not re.match(r"bash: line \d+: +\d+ ", x))


@pytest.mark.long
def test_the_page_can_be_followed_to_the_letter(shell: Shell) -> None:
    """Each command prints what the page says it prints."""
    with servers.Redis() as redis:
        for language, file, text in FENCE.findall(PAGE.read_text("utf-8")):
            if file:
                (shell.folder / "hello" / file).write_text(text, "utf-8")
            elif language == "console":
                for command in commands(text):
                    follow(shell, command, redis.url)
            else:
                assert language == "sh", f"what is to be done with ```{language}?"


@pytest.mark.parametrize(
    "shown, printed, right",
    [
        (["a  b"], "a b\n", True),
        (["… accepted"], "123 accepted\n", True),
        (["… accepted"], "123 refused\n", False),
        (["a", "...", "d"], "a\nb\nc\nd\n", True),
        (["a", "..."], "b\n", False),
        (["a"], "a\nb\n", False),
        ([], "a\n", False),
        (["..."], "", True),
    ],
)
def test_a_page_that_is_wrong_is_found(
    shown: list[str], printed: str, right: bool
) -> None:
    """The comparison itself: what is shown must come, and nothing else."""
    assert (differs(shown, printed) is None) == right
