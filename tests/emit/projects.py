"""A small project on disk, built in this process or by the real command."""

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from qgen.commands import build, check

SPEC = """\
schema_version = 1

[project]
name = "support"

[jobs.draft_reply.payload]
text = "str"

[jobs.digest.payload]
kind = "str"
"""
PACKAGE = "src/support_queue"
JOB = f"{PACKAGE}/jobs/draft_reply.py"
ENGINE = f"{PACKAGE}/definitions.py"


@dataclass
class Project:
    """A folder with a spec."""

    root: Path

    @classmethod
    def at(cls, root: Path, spec: str = SPEC) -> "Project":
        """A new project; its spec has LF line ends."""
        root.mkdir(parents=True, exist_ok=True)
        project = cls(root)
        project.write("queue.toml", spec)
        return project

    def path(self, name: str) -> Path:
        return self.root / name

    def read(self, name: str) -> str:
        return self.path(name).read_bytes().decode()

    def write(self, name: str, text: str) -> None:
        self.path(name).parent.mkdir(parents=True, exist_ok=True)
        self.path(name).write_bytes(text.encode())

    def change(self, name: str, old: str, new: str) -> None:
        text = self.read(name)
        assert old in text
        self.write(name, text.replace(old, new))

    def build(self, force: bool = False, target: str | None = None) -> int:
        return build.run(str(self.path("queue.toml")), target, force)

    def check(self, target: str | None = None) -> int:
        return check.run(str(self.path("queue.toml")), target)

    def qgen(self, *arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
        """The real command, in the project's folder."""
        return subprocess.run(
            [sys.executable, "-m", "qgen", *arguments],
            cwd=self.root,
            capture_output=True,
            text=True,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)} | env,
        )

    def tree(self) -> dict[str, bytes]:
        """Every file but what qgen keeps for itself."""
        return {
            path.relative_to(self.root).as_posix(): path.read_bytes()
            for path in self.root.rglob("*")
            if path.is_file() and ".qgen" not in path.parts
        }

    def stamps(self) -> dict[str, tuple[int, int]]:
        """When each file was last written, and its inode."""
        return {
            name: (self.path(name).stat().st_mtime_ns, self.path(name).stat().st_ino)
            for name in self.tree()
        }
