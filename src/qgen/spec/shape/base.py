"""What every table of the shape is made with."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field


def key(default: Any, description: str, **limits: Any) -> Any:
    """A key that may be left out."""
    return Field(default, description=description, **limits)


def needed(description: str, **limits: Any) -> Any:
    """A key that must be there."""
    return Field(description=description, **limits)


class Shape(BaseModel):
    """A table: no unknown keys, no conversions (a boolean is no number)."""

    model_config = ConfigDict(
        extra="forbid", strict=True, frozen=True, defer_build=True
    )
