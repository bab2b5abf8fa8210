"""The specs of docs/spec.md build, or are refused code by code."""

import json
import re
import tomllib
from pathlib import Path

from jsonschema import Draft202012Validator

from qgen.front import analyse
from qgen.spec.examples import PAID, SMALLEST, WHOLE

PAGE = Path(__file__).parents[2] / "docs" / "spec.md"


def refused(text):
    """(line, code) of every error, and the text of that line."""
    model, found = analyse(text.encode(), "queue.toml")
    lines = text.splitlines()
    errors = [each for each in found if each.is_error]
    assert (model is None) == bool(errors)
    return [(lines[e.place.line - 1].split("#")[0].strip(), e.code) for e in errors]


def test_the_page_shows_them():
    blocks = re.findall(r"```toml\n(.*?)```", PAGE.read_text("utf-8"), re.S)
    assert blocks == [SMALLEST, PAID, WHOLE]


def test_the_smallest_builds():
    assert refused(SMALLEST) == []


def test_money_builds():
    assert refused(f"{SMALLEST}\n{PAID}") == []


def test_the_whole_spec_builds():
    assert refused(WHOLE) == []


def test_any_tool_validates_them_with_the_printed_schema():
    schema = json.loads((PAGE.parents[1] / "schema/v1/queue.schema.json").read_text())
    tool = Draft202012Validator(schema)
    for text in (SMALLEST, f"{SMALLEST}\n{PAID}", WHOLE):
        tool.validate(tomllib.loads(text))
    assert not tool.is_valid(tomllib.loads(f"{SMALLEST}\n[stall]\nafter = 60\n"))
