"""What is printed from the sources is current; tests/spec/printed.py prints it."""

import importlib.util
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

HERE = Path(__file__).parent
_found = importlib.util.spec_from_file_location("printed", HERE / "printed.py")
assert _found and _found.loader
printed = importlib.util.module_from_spec(_found)
_found.loader.exec_module(printed)


@pytest.mark.parametrize("path", printed.PRINTED)
def test_it_is_current(path):
    on_disk = (printed.ROOT / path).read_bytes().decode()
    assert on_disk == printed.PRINTED[path]()


def nodes(node):
    """Every table of a document."""
    if isinstance(node, dict):
        yield node
        node = list(node.values())
    if isinstance(node, list):
        for each in node:
            yield from nodes(each)


def test_the_schemas_are_schemas_without_one_of():
    for module in (printed.spec_schema, printed.diagnostics_schema):
        Draft202012Validator.check_schema(module.schema())
        assert not any(
            {"oneOf", "anyOf"} & set(node) for node in nodes(module.schema())
        )
