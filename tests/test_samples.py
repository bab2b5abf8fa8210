"""The sampler of the generated suite makes payloads that any model accepts."""

import datetime as dt
import re
from decimal import Decimal
from typing import Literal
from uuid import UUID

import pytest
import samples
from pydantic import BaseModel, ConfigDict, Field, JsonValue, create_model

KINDS = {
    "str": (str, ...),
    "short": (str, Field(max_length=3)),
    "long": (str, Field(min_length=50, max_length=60)),
    "longer": (str, Field(min_length=5000)),
    "empty": (str, Field(max_length=0)),
    "pattern": (str, Field(pattern=r"^(foo|ba[rz]{2,4})-[0-9a-f]{8}$")),
    "unanchored": (str, Field(pattern="x", max_length=2)),
    "negated": (str, Field(pattern=r"^[^\s@]+@[^\s@]+\.\w{2,}$", min_length=12)),
    "classes": (str, Field(pattern=r"^\d+\s?\S*$")),
    "int": (int, ...),
    "one int": (int, Field(ge=3, le=3)),
    "low int": (int, Field(le=-5)),
    "high int": (int, Field(ge=10**15)),
    "float": (float, ...),
    "narrow float": (float, Field(ge=0.5, le=0.75)),
    "bool": (bool, ...),
    "decimal": (Decimal, ...),
    "narrow decimal": (Decimal, Field(ge=Decimal("0.01"), le=Decimal("0.05"))),
    "low decimal": (Decimal, Field(le=Decimal("-0.000001"))),
    "uuid": (UUID, ...),
    "datetime": (dt.datetime, ...),
    "date": (dt.date, ...),
    "json": (JsonValue, ...),
    "enum": (Literal["a", "b"], ...),
    "one word": (Literal["a"], ...),
    "numbers": (Literal[1, 5], ...),
    "list": (list[str], Field(min_length=3, max_length=3)),
    "no list": (list[int], Field(max_length=0)),
    "dict": (dict[str, list[dt.datetime | None]], Field(min_length=1)),
    "optional": (UUID | None, None),
    "optional decimal": (Decimal | None, Field(default=None, ge=Decimal("1"))),
    "optional list": (list[dict[str, Decimal]] | None, None),
}


def model(*kind) -> type[BaseModel]:
    config = ConfigDict(extra="forbid", frozen=True, defer_build=True)
    return create_model("Payload", __config__=config, field=kind)


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
@pytest.mark.parametrize("n", range(12))
def test_a_sample_is_valid_and_survives_json(kind, n):
    payload = samples.sample(model(*kind), n)
    again = type(payload).model_validate_json(payload.model_dump_json())
    assert again == payload


@pytest.mark.parametrize("kind", ["str", "short", "int", "uuid", "datetime", "pattern"])
def test_samples_differ(kind):
    found = {
        samples.sample(model(*KINDS[kind]), n).model_dump_json() for n in range(2, 12)
    }
    assert len(found) == 10


def test_a_pattern_that_no_text_has_is_named():
    kind = model(str, Field(pattern="^ab$", max_length=1))
    with pytest.raises(AssertionError, match=re.escape("'^ab$'")):
        samples.sample(kind)
