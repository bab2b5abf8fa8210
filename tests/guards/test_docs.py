"""The pages for users: their links lead somewhere, and their commands exist."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md")])

SPEC = """\
schema_version = 1

[project]
name = "support"
output = "."

[jobs.draft_reply.payload]
text = "str"
"""


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", page.read_text("utf-8"), re.MULTILINE)
    return {
        re.sub(r"[^\w -]", "", h).strip().lower().replace(" ", "-") for h in headings
    }


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    """Each relative link names a file that is there, and a heading of it."""
    for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text("utf-8")):
        if re.match(r"https?:", link):
            continue
        path, _, anchor = link.partition("#")
        target = page.parent / path if path else page
        assert target.is_file(), f"{page.name}: {link}"
        assert not anchor or anchor in anchors(target), f"{page.name}: {link}"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the package that the pages speak of."""
    folder = tmp_path_factory.mktemp("documented")
    (folder / "queue.toml").write_text(SPEC, "utf-8")
    build = [sys.executable, "-m", "qgen", "build", "--quiet"]
    subprocess.run(build, cwd=folder, check=True)
    return folder


def commands() -> set[str]:
    """What the pages call a command: typed in full, or the `look` of a symptom."""
    text = "\n".join(page.read_text("utf-8") for page in PAGES)
    typed = re.findall(r"python -m (?:support|hello)_queue ([a-z-]+(?: [a-z]+)?)", text)
    symptoms = (ROOT / "docs" / "operations.md").read_text("utf-8")
    rows = re.findall(r"^\| .*? \|(.*?)\|", symptoms.partition("do when …")[2], re.M)
    looks = re.findall(r"`([a-z-]+)[^`]*`", "\n".join(rows))
    return {words if "dead" in words else words.split()[0] for words in typed} | {
        *looks
    }


def test_commands_of_the_package_exist(folder: Path) -> None:
    """Each is known to the generated command line."""
    found = commands()
    assert {"worker", "dead-letters replay", "health", "show"} <= found
    for words in sorted(found):
        asked = [sys.executable, "-m", "support_queue", *words.split(), "--help"]
        run = subprocess.run(asked, cwd=folder, capture_output=True, text=True)
        assert run.returncode == 0, f"{words}: {run.stderr}"
