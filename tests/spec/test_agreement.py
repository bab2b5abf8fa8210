"""The schema and the types give the same verdict; no generated spec is a traceback.

QGEN_SPECS=10000 runs the full count; the default keeps the suite short.
"""

import importlib.util
import json
import math
import os
import tomllib
from dataclasses import fields, is_dataclass, replace
from keyword import iskeyword
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator
from pydantic import ValidationError

from qgen.front import analyse
from qgen.spec.load import read
from qgen.spec.shape import Spec
from qgen.spec.source import Source
from qgen.spec.validate import validator
from qgen.spec.words import WORDS

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
EXAMPLES = sorted((ROOT / "examples").glob("*/*.toml"))
EXAMPLES = [path for path in EXAMPLES if "approvals" not in path.name]
CASES = sorted((HERE.parent / "cases").glob("*/queue.toml"))
COUNT = int(os.environ.get("QGEN_SPECS", "1000"))
PART = 100

_found = importlib.util.spec_from_file_location("specs", HERE / "specs.py")
assert _found and _found.loader
specs = importlib.util.module_from_spec(_found)
_found.loader.exec_module(specs)


def types_accept(data):
    try:
        Spec.model_validate(data)
    except ValidationError:
        return False
    return True


def agree(data):
    by_schema = validator().is_valid(data)
    assert by_schema == types_accept(data), data
    return by_schema


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.parent.name)
def test_over_the_cases(path):
    source = read(path.read_bytes(), "queue.toml")
    if isinstance(source, Source):
        agree(source.data)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_the_printed_schema_takes_the_examples(path):
    """As an editor reads it, that knows nothing of qgen."""
    printed = json.loads((ROOT / "schema/v1/queue.schema.json").read_text("utf-8"))
    tool = Draft202012Validator(printed)
    data = tomllib.loads(path.read_text("utf-8"))
    tool.validate(data)
    assert not tool.is_valid(data | {"jbos": {}})


@pytest.mark.parametrize("start", range(0, COUNT, PART))
def test_over_generated_specs(start):
    accepted = 0
    for seed in range(start, start + PART):
        data = specs.generate(seed)
        accepted += agree(data)
        text = specs.document(data)
        _, found = analyse(text.encode(), "queue.toml")
        assert len(set(found)) == len(found)
        lines = text.count("\n") + 1
        for each in found:
            assert 1 <= each.place.line <= lines, (each, text)
        if not validator().is_valid(tomllib.loads(text)):
            assert any(each.is_error for each in found)
    assert PART // 10 < accepted < PART


def floats(node):
    """Every float of a model."""
    if is_dataclass(node):
        node = tuple(getattr(node, each.name) for each in fields(node))
    if isinstance(node, tuple):
        for each in node:
            yield from floats(each)
    elif isinstance(node, float):
        yield node


def test_what_passes_is_bounded_and_whole():
    """Limits are finite and positive; what the model names is in it, under names that
    Python takes and that do not meet."""
    models = 0
    for seed in range(COUNT):
        text = specs.document(specs.built_only(seed))
        model, _ = analyse(text.encode(), "queue.toml", "arq")
        if model is None:
            continue
        models += 1
        settings = replace(model, jobs=(), facts=())
        assert all(math.isfinite(each) and each >= 0 for each in floats(settings))
        for job in model.jobs:
            assert job.timeout is None or 0 < job.timeout < math.inf
            assert 1 <= model.policy(job).tries <= 1000
            assert job.queue in {queue.name for queue in model.queues}
            assert any(job.queue in worker.queues for worker in model.workers)
            names = [job.class_name, job.name, *(each.name for each in job.payload)]
            assert all(each.isidentifier() and not iskeyword(each) for each in names)
        classes = [job.class_name for job in model.jobs]
        assert len(set(classes)) == len(classes)
        assert hash(model) is not None
    assert models >= COUNT // 40


def test_the_kinds_of_text_know_sound_examples():
    assert set(specs.SOUND) == set(WORDS)
    for title, texts in specs.SOUND.items():
        for text in texts:
            assert WORDS[title].check(text) == text


@pytest.mark.parametrize("text", ["x\n", "", "x" * 5000, "1m\n", "str\n", "none\n"])
def test_no_kind_of_text_lets_a_newline_in_at_the_end(text):
    for word in WORDS.values():
        if word.title in ("a text",):
            continue
        assert not word.regex.search(text), word.title
