"""From bytes to data: everything that can be wrong with the text as such.

``read`` never raises on any bytes.  It looks for what people and tools do to files
(other encodings, merges, joins) before it blames TOML's grammar.
"""

from __future__ import annotations

import re
import tomllib
from typing import Any, Final

from qgen.diagnostics.catalogue import text as codes
from qgen.diagnostics.catalogue.code import Code
from qgen.diagnostics.value import Diagnostic, Place
from qgen.spec.source import Source, Text
from qgen.spec.syntax import duplicate, syntax_error

LARGEST: Final = 5_000_000
DEEPEST: Final = 40

MARKS: Final = (
    (b"\xff\xfe\x00\x00", "UTF-32"),
    (b"\x00\x00\xfe\xff", "UTF-32"),
    (b"\xff\xfe", "UTF-16 (little-endian)"),
    (b"\xfe\xff", "UTF-16 (big-endian)"),
)
TOKEN: Final = re.compile(
    r'"""(?:[^"\\]|\\[\s\S]|"(?!""))*"{3,5}|\'\'\'(?:[^\']|\'(?!\'\'))*\'{3,5}'
    r'|"(?:[^"\\\n]|\\.)*"|\'[^\'\n]*\'|#[^\n]*|[\[\]{}]'
)
CONFLICT: Final = re.compile(r"^(?:<{7}|>{7}|\|{7})(?: .*)?\r?$|^={7}\r?$", re.M)
LONG_NUMBER: Final = re.compile(r"[0-9][0-9_]{4300,}")
ENCODING_HELP: Final = "save the file as UTF-8"


def read(data: bytes, file: str) -> Source | tuple[Diagnostic, ...]:
    """The source of a spec, or what keeps it from being read."""
    if len(data) > LARGEST:
        size = f"the file has {len(data):,} bytes; a spec has at most {LARGEST:,}."
        return (problem_of_file(file, codes.TOO_LARGE, size, "split the project"),)
    text = decode(data, file)
    if isinstance(text, Diagnostic):
        return (text,)
    found = damage(text)
    if found:
        return (found,)
    parsed = parse(text)
    if isinstance(parsed, Diagnostic):
        return (parsed,)
    source = Source(file, text.text, parsed)
    deep = too_deep(source)
    return (deep,) if deep else source


def problem_of_file(file: str, code: Code, message: str, help: str) -> Diagnostic:
    """A problem of the file as a whole."""
    return Text(file, "").problem(code, Place(file), message, help)


def decode(data: bytes, file: str) -> Text | Diagnostic:
    """UTF-8 text without its byte order mark."""
    for mark, encoding in MARKS:
        if data.startswith(mark):
            shown = " ".join(f"{byte:02X}" for byte in mark)
            message = f"the file is {encoding}: it begins with the bytes {shown}."
            return problem_of_file(file, codes.ENCODING, message, ENCODING_HELP)
    if b"\x00" in data:
        offset = data.index(b"\x00")
        halves = len(data) > 3 and (data[1::2].count(0) + data[::2].count(0)) * 3
        what = "UTF-16 without a mark" if halves > len(data) else "binary"
        message = f"the file is {what}: byte {offset} is 00."
        return problem_of_file(file, codes.ENCODING, message, ENCODING_HELP)
    body = data.removeprefix(b"\xef\xbb\xbf")
    try:
        return Text(file, body.decode())
    except UnicodeDecodeError as error:
        good = body[: error.start].decode()
        message = (
            f"the file is not UTF-8: the byte {body[error.start]:02X} here is of an"
            " 8-bit encoding such as Latin-1 or Windows-1252."
        )
        span = (len(good), len(good) + 1)
        return Text(file, good + "?").problem(
            codes.ENCODING, span, message, ENCODING_HELP
        )


def damage(text: Text) -> Diagnostic | None:
    """Marks and carriage returns that no editor shows."""
    if (at := text.text.find("\r")) >= 0:
        lone = re.compile(r"\r(?!\n)").search(text.text, at)
        if lone:
            return text.problem(
                codes.LONE_CR,
                (lone.start(), lone.end()),
                "a carriage return stands here without a line feed.",
                "end lines with LF or CRLF",
            )
    mark = re.search("^\ufeff", text.text, re.M)
    if mark:
        return text.problem(
            codes.STRAY_MARK,
            (mark.start(), mark.end()),
            "a byte order mark stands inside the file, at the start of this line.",
            "delete the invisible character; it comes from joining two files",
        )
    return None


def parse(text: Text) -> dict[str, Any] | Diagnostic:
    """The data of a TOML text."""
    try:
        return tomllib.loads(text.text)
    except tomllib.TOMLDecodeError as error:
        return conflict(text) or duplicate(text, error) or syntax_error(text, error)
    except RecursionError:
        return deepest_bracket(text)
    except ValueError:  # int() refuses more than 4,300 digits
        match = LONG_NUMBER.search(text.text)
        span = match.span() if match else (0, 0)
        message = "this number has thousands of digits."
        return text.problem(codes.HUGE_NUMBER, span, message, "write a smaller number")


def conflict(text: Text) -> Diagnostic | None:
    """The first marker of an unfinished merge."""
    marker = CONFLICT.search(text.text)
    if marker is None:
        return None
    return text.problem(
        codes.CONFLICT,
        marker.span(),
        "the file holds the markers of an unfinished merge.",
        "choose one side and delete the lines <<<<<<<, ======= and >>>>>>>",
    )


def deep_message(text: Text, span: tuple[int, int]) -> Diagnostic:
    message = f"this is nested more than {DEEPEST} levels deep."
    return text.problem(codes.TOO_DEEP, span, message, "write a flatter value")


def deepest_bracket(text: Text) -> Diagnostic:
    """Where brackets first pass the limit."""
    depth = 0
    for token in TOKEN.finditer(text.text):
        depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(token.group(), 0)
        if depth > DEEPEST:
            return deep_message(text, token.span())
    return deep_message(text, (0, 0))


def too_deep(source: Source) -> Diagnostic | None:
    """A walk without recursion: tables of tables may be deeper than the stack."""
    level: list[Any] = [source.data]
    for _ in range(DEEPEST + 1):
        level = [
            child
            for node in level
            for child in (node.values() if isinstance(node, dict) else node)
            if isinstance(child, dict | list)
        ]
        if not level:
            return None
    # Spans are looked up by path, which only a shallow one can afford.
    if source.text.count("[") + source.text.count("{") > DEEPEST:
        found = deepest_bracket(source)
        if found.place.line and found.place.end_column != found.place.column:
            return found
    return long_key(source)


def long_key(source: Source) -> Diagnostic:
    """The first key of too many parts."""
    parts = r"[ \t]*\.[ \t]*".join([r"[\"'\w-]+"] * 12)
    match = re.search(parts, source.text)
    return deep_message(source, match.span() if match else (0, 0))
