"""A kind of text: one definition for pydantic, schema and message."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import core_schema

from qgen.diagnostics.catalogue.code import Code


@dataclass(frozen=True)
class Word:
    """A kind of text.

    ``title`` completes "that is not …" and identifies the kind in the schema; ``write``
    says what to write; ``pattern`` is anchored at both ends and never lets a newline in
    at the end (``$`` means the very end here); ``echo`` False keeps the value out of
    messages.
    """

    title: str
    pattern: str
    write: str
    code: Code
    echo: bool = True

    @cached_property
    def regex(self) -> re.Pattern[str]:
        """The pattern with ``$`` meaning the end of the text, as JSON Schema means it."""
        return compiled(self.pattern)

    def check(self, text: str) -> str:
        """The text, or ValueError."""
        if not self.regex.search(text):
            raise ValueError(f"not {self.title}")
        return text

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> core_schema.CoreSchema:
        text = core_schema.str_schema(strict=True)
        return core_schema.no_info_after_validator_function(self.check, text)

    def __get_pydantic_json_schema__(
        self, schema: core_schema.CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        return {"type": "string", "title": self.title, "pattern": self.pattern}


def compiled(pattern: str) -> re.Pattern[str]:
    """A schema pattern for Python, where a bare ``$`` would also match before a newline."""
    return re.compile(re.sub(r"(?<!\\)\$(?=\)|$)", r"\\Z", pattern))
