"""``qgen targets``: what each backend can do."""

from __future__ import annotations

import json
from dataclasses import asdict

from qgen.targets import TARGETS


def run(format: str = "text") -> int:
    """Print the backends."""
    if format == "json":
        print(json.dumps(document(), indent=2))
        return 0
    for backend in TARGETS.values():
        print(f"{backend.name}: {backend.summary}")
        print(f"  needs {', '.join(backend.requirements)}")
        for ability in backend.abilities:
            note = f" ({ability.note})" if ability.note else ""
            print(f"  {ability.how:9} {ability.feature}{note}")
    return 0


def document() -> dict[str, object]:
    """The same for programs."""
    built = {
        name: {
            "summary": backend.summary,
            "requirements": list(backend.requirements),
            "abilities": [asdict(ability) for ability in backend.abilities],
        }
        for name, backend in TARGETS.items()
    }
    return {"targets": built}
