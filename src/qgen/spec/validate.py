"""The gate: the JSON Schema over the data, each error in the user's words.

``validate`` also says which paths it refused.  The caller reads on without them, so that
one run reports everything, and drops what would only be an echo of them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from functools import cache
from typing import Any, Final

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError
from jsonschema.validators import extend

from qgen.diagnostics.catalogue import keys, values
from qgen.spec.finding import Finding
from qgen.spec.messages import kind_of, kinds, shown
from qgen.spec.schema import schema
from qgen.spec.spans import Path
from qgen.spec.suggest import nearest, places, unknown_key
from qgen.spec.word import Word, compiled
from qgen.spec.words import COLUMN, SCALARS, WORDS

LENGTHS = {
    "minItems": "at least {} entry",
    "maxItems": "at most {} entries",
    "minProperties": "at least {} entry",
}


def is_integer(checker: Any, value: Any) -> bool:
    """A boolean and 3.0 are no whole numbers."""
    return isinstance(value, int) and not isinstance(value, bool)


def is_number(checker: Any, value: Any) -> bool:
    """nan and inf are no numbers."""
    real = isinstance(value, int | float) and not isinstance(value, bool)
    return real and math.isfinite(value)


def check_pattern(
    validator: Any, pattern: str, value: Any, schema: Any
) -> Iterator[ValidationError]:
    """``pattern`` where ``$`` is the very end, as in ECMAScript."""
    if isinstance(value, str) and not regex(pattern).search(value):
        yield ValidationError("pattern")


regex = cache(compiled)


@cache
def validator() -> Any:
    """JSON Schema with the strict numbers of the language."""
    types = Draft202012Validator.TYPE_CHECKER.redefine_many(
        {"integer": is_integer, "number": is_number}
    )
    strict = extend(
        Draft202012Validator, {"pattern": check_pattern}, type_checker=types
    )
    return strict(schema())


def validate(data: dict[str, Any]) -> list[Finding]:
    """What the schema refuses, each once; the order is not that of the file."""
    found: list[Finding] = []
    for error in validator().iter_errors(data):
        found += findings(error)
    return found


def findings(error: ValidationError) -> Iterator[Finding]:
    """The findings of one error of the schema."""
    path: Path = tuple(error.absolute_path)
    match error.validator:
        case "additionalProperties":
            known = error.schema["properties"]
            for key in error.instance:
                if key not in known:
                    yield unknown_key(path, key, list(known))
        case "required":
            for key in error.validator_value:
                if key not in error.instance:
                    yield missing(path, key)
        case _ if list(error.absolute_schema_path)[-2:-1] == ["propertyNames"]:
            yield bad_name(path, error)
        case "type":
            yield wrong_type(path, error)
        case "pattern":
            yield wrong_word(path, error)
        case "enum":
            if isinstance(error.instance, str):  # else its type is the mistake
                yield wrong_choice(path, error)
        case _:
            yield out_of_range(path, error)


def missing(path: Path, key: str) -> Finding:
    """A key without default was left out."""
    if key == "jobs" and not path:
        return no_jobs(())
    table = f"[{'.'.join(map(str, path))}] has no `{key}`" if path else f"no `{key}`"
    if key == "project":
        message = "there is no [project]."
    else:
        message = f"{table}." if path else f"there is {table}."
    write = {
        "schema_version": "write schema_version = 1 at the top",
        "project": 'write [project] and below it name = "…"',
        "name": 'write name = "…", a name in snake_case',
    }.get(key, f"add `{key}`, it has no default")
    unless = ((*path, key),)
    return Finding(keys.MISSING_KEY, path, message, write, at="key", unless=unless)


def no_jobs(path: Path) -> Finding:
    """Nothing to generate."""
    message = "there are no jobs, so nothing can be generated."
    write = "write one [jobs.<name>] per job, and where its record is kept in [record]"
    unless: tuple[Path, ...] = () if path else (("jobs",),)
    return Finding(keys.NO_JOBS, path, message, write, at="key", unless=unless)


def subject(path: Path) -> str:
    """What the value belongs to."""
    if isinstance(path[-1], int):
        return f"an entry of `{path[-2]}`"
    return f"`{path[-1]}`"


def wrong_type(path: Path, error: ValidationError) -> Finding:
    """A value of another type than the key takes."""
    word = word_of(path, error)
    given, wanted = kind_of(error.instance), kinds(error.schema)
    if word and word.code in (values.NOT_MONEY, values.CANNOT_ADOPT):
        message = f"{subject(path)} takes {word.title} in quotes, not {given}."
        return Finding(word.code, path, message, word.write)
    message = f"{subject(path)} takes {wanted}, not {given}."
    write = word.write if word else f"write {wanted}"
    if wanted == "a table":
        write = f"write [{'.'.join(map(str, path))}] on a line of its own"
        if len(path) == 2 and f"[{path[0]}.<name>]" in places().get(str(path[1]), []):
            write = f"write [{path[0]}.<name>] above it: each one has its own table"
    return Finding(values.WRONG_TYPE, path, message, write)


def word_of(path: Path, error: ValidationError) -> Word | None:
    """The kind of text that the key takes."""
    if path[:2] == ("record", "columns"):
        return COLUMN
    return WORDS.get(error.schema.get("title", ""))


def wrong_word(path: Path, error: ValidationError) -> Finding:
    """A text of another kind than the key takes."""
    word = WORDS[error.schema["title"]]
    name = subject(path)
    if word.echo:
        message = f"{name} is {shown(error.instance)}, which is not {word.title}."
    else:
        message = f"{name} is not {word.title}."
    write = word.write
    if word.code is values.NOT_A_TYPE:
        meant = re.sub("[A-Za-z]+", meant_type, error.instance)
        write = f"did you mean `{meant}`?" if word.regex.search(meant) else word.write
    return Finding(word.code, path, message, write)


def meant_type(word: re.Match[str]) -> str:
    """The type that somebody meant by a word; the word itself when it is unlike any."""
    near = nearest(word.group(), TYPE_WORDS, 0.6)
    return TYPE_WORDS[near] if near else word.group()


TYPE_WORDS: Final = {
    **{name: name for name in (*SCALARS, "list", "dict", "enum")},
    "string": "str",
    "text": "str",
    "integer": "int",
    "number": "float",
    "boolean": "bool",
    "object": "json",
    "any": "json",
    "timestamp": "datetime",
    "array": "list",
    "map": "dict",
}


def bad_name(path: Path, error: ValidationError) -> Finding:
    """A table or field whose name is none."""
    name = str(error.instance)
    here = (*path, name)
    if error.validator == "enum":
        return unknown_key(path, name, list(error.validator_value))
    word = WORDS[error.schema["title"]]
    message = f"{shown(name)} is not {word.title}."
    write = word.write
    if path == ("jobs",):
        write += '; wire = "…" keeps a foreign name'
    return Finding(word.code, here, message, write, at="key")


def wrong_choice(path: Path, error: ValidationError) -> Finding:
    """Not one of a few words."""
    choices = [f'"{each}"' for each in error.validator_value]
    given = shown(error.instance)
    message = f"{subject(path)} is {given}, which is not one of its choices."
    write = f"write {', '.join(choices[:-1])} or {choices[-1]}"
    near = nearest(error.instance, list(error.validator_value), 0.6)
    if near:
        write = f'did you mean "{near}"?'
    return Finding(values.NOT_A_CHOICE, path, message, write)


def out_of_range(path: Path, error: ValidationError) -> Finding:
    """A number or a length outside its range."""
    low, high = error.schema.get("minimum"), error.schema.get("maximum")
    if path == ("jobs",):
        return no_jobs(path)
    if path == ("schema_version",):
        message = f"this spec is written in version {error.instance} of the language."
        write = "write schema_version = 1, or use a qgen that reads it"
        return Finding(keys.SCHEMA_VERSION, path, message, write)
    if error.validator in LENGTHS:
        limit = LENGTHS[str(error.validator)].format(error.validator_value)
        message = f"`{path[-1]}` takes {limit}."
        write = "add one, or leave the key out"
        if error.validator == "maxItems":
            write = "shorten the list"
        return Finding(values.OUT_OF_RANGE, path, message, write)
    message = f"`{path[-1]}` is {shown(error.instance)}, which is out of its range."
    write = f"write a number from {low:,} to {high:,}"
    return Finding(values.OUT_OF_RANGE, path, message, write)
