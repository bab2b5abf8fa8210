"""From bytes to data: any bytes give a source or diagnostics, at the right place."""

import random
import sys
import tomllib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qgen.diagnostics.value import Diagnostic
from qgen.front import analyse
from qgen.spec.load import LARGEST, read
from qgen.spec.source import Source
from qgen.spec.spans import scan

SPEC = (
    'schema_version = 1\n\n[project]\nname = "support"\n\n[jobs.a]\npriority = "low"\n'
)


def code_of(data):
    found = read(data, "queue.toml")
    return None if isinstance(found, Source) else [each.code for each in found]


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"", None),
        (SPEC.encode(), None),
        (b"\xef\xbb\xbf" + SPEC.encode(), None),
        (SPEC.replace("\n", "\r\n").encode(), None),
        (SPEC.encode("utf-16"), "QG002"),
        (SPEC.encode("utf-16-be"), "QG002"),
        (("\ufeff" + SPEC).encode("utf-16-be"), "QG002"),
        (SPEC.encode("utf-32"), "QG002"),
        (b"\x7fELF\x00\x01", "QG002"),
        (b"\xef\xbb\xbfa = 1\n# \xe9\n", "QG002"),
        (b"a = 1\rb = 2\n", "QG004"),
        (b"x" * (LARGEST + 1), "QG007"),
        (b"x = " + b"[" * 5000, "QG008"),
        (b"x = " + b"{a = " * 5000, "QG008"),
        (b"[" + b".".join([b"a"] * 5000) + b"]\n", "QG008"),
        (b"x = 0x" + b"f" * 90000, None),
        (b"x = " + b"1" * 90000, "QG009"),
        (b"x = 1e400\n", None),
    ],
)
def test_damaged_text(data, code):
    assert code_of(data) == (None if code is None else [code])


def test_a_byte_is_named_at_its_place():
    (found,) = read(b"\xef\xbb\xbfa = 1\nb = '\xfc'\n", "queue.toml")
    assert (found.place.line, found.place.column) == (2, 6)
    assert "FC" in found.message


def test_a_deep_stack_changes_nothing():
    """The answer does not hang on how deep the caller already is."""

    def below(depth, data):
        return code_of(data) if depth == 0 else below(depth - 1, data)

    room = sys.getrecursionlimit() - 250
    for size in (30, 60, 400):
        data = b"x = " + b"[" * size + b"]" * size
        assert below(0, data) == (["QG008"] if size > 40 else None)
        assert below(room, data) == below(0, data)


@given(st.binary(max_size=300))
@settings(max_examples=300, deadline=None)
def test_no_bytes_raise(data):
    model, found = analyse(data, "queue.toml")
    assert model is None and all(isinstance(each, Diagnostic) for each in found)


def test_no_mutilated_spec_raises():
    """Cut, doubled and swapped pieces of a sound spec."""
    rng = random.Random(20)
    pieces = [
        "\r",
        "\n",
        '"',
        "'",
        "[",
        "]",
        "{",
        "}",
        "=",
        ".",
        "#",
        "\\",
        "\ufeff",
        "\0",
    ]
    for _ in range(600):
        text = SPEC
        for _ in range(rng.randint(1, 4)):
            at, to = sorted(rng.randint(0, len(text)) for _ in range(2))
            text = rng.choice(
                [
                    text[:at] + text[to:],
                    text[:to] + text[at:],
                    text[:at] + rng.choice(pieces) + text[at:],
                    text[:to],
                ]
            )
        _, found = analyse(text.encode(), "queue.toml")
        lines = text.count("\n") + 1
        assert all(0 <= each.place.line <= lines for each in found), text


def test_positions_of_every_value():
    """The span of each value is text that parses to that value."""
    text = (
        'a = 1 # c\n"b.c" . \'d\' = "x\\n"\n[t.u]\nl = [ 1, [2, 3], {k = "v"}, ]\n'
        'm = """\nlong\n"""\nw = "日本👩‍👧"\n[[t.v]]\nz = 2026-01-02 03:04:05\n[[t.v]]\nz = {}\n'
        "[t.v.sub]\ny = '''a'b'''\n"
    )
    data, spans = tomllib.loads(text), scan(text).spans

    def walk(node, path):
        if path and not isinstance(node, dict | list):
            start, end = spans[path].value
            assert tomllib.loads(f"x = {text[start:end]}")["x"] == node, path
            return
        items = node.items() if isinstance(node, dict) else enumerate(node)
        for key, each in items:
            assert (*path, key) in spans or isinstance(key, int)
            walk(each, (*path, key))

    walk(data, ())


@pytest.mark.parametrize("ends", ["\n", "\r\n"])
def test_a_place_counts_characters(ends):
    text = f'# 日本{ends}schema_version = 1{ends}note = "é" # x{ends}'
    source = read(b"\xef\xbb\xbf" + text.encode(), "queue.toml")
    assert isinstance(source, Source)
    place = source.locate(("note",))
    assert (place.line, place.column, place.end_column) == (3, 8, 11)
