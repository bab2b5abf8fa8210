"""The wheel holds what a checkout holds: no template is forgotten, nothing is extra."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = {"src/qgen": "qgen", "templates": "qgen/templates", "schema": "qgen/schema"}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps"]
    command += ["--no-build-isolation", "--disable-pip-version-check"]
    subprocess.run([*command, "-w", str(folder), str(ROOT)], check=True)
    (built,) = folder.glob("qgen-*.whl")
    return built


def files(folder: Path) -> set[str]:
    return {
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*")
        if path.is_file()
        and "__pycache__" not in path.parts
        and not path.name.startswith(".")
    }


def test_the_wheel_holds_the_package_the_templates_and_the_schema(wheel):
    expected = {
        f"{inside}/{name}"
        for outside, inside in FOLDERS.items()
        for name in files(ROOT / outside)
    }
    held = {
        name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name
    }
    assert held == expected
    assert "qgen/templates/tests/servers.py" in held


def test_templates_are_copied_byte_for_byte(wheel):
    with zipfile.ZipFile(wheel) as archive:
        for name in files(ROOT / "templates"):
            original = (ROOT / "templates" / name).read_bytes()
            assert archive.read(f"qgen/templates/{name}") == original, name
