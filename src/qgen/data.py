"""Where the data that ships with qgen is: templates and schemas."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Literal


@cache
def folder(kind: Literal["templates", "schema"]) -> Path:
    """The folder of that name: inside the package (a wheel) or beside src/ (a checkout).

    An editable install resolves to the checkout, so an edited template is seen at once.
    """
    here = Path(__file__).resolve().parent
    for place in (here / kind, here.parents[1] / kind):
        if place.is_dir():
            return place
    raise FileNotFoundError(f"qgen was installed without its {kind}/ folder")
