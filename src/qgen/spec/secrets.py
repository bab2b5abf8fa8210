"""Values that look like a password or a key.

A rule may be wrong in either direction: this is a net, not a proof.  A finding says
where the value stands and never repeats it.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Final

from qgen.diagnostics.catalogue import values
from qgen.spec.finding import Finding
from qgen.spec.spans import Path
from qgen.spec.words import FIELD_TYPE

SHAPES: Final = re.compile(
    "|".join(
        (
            r"[a-z][a-z0-9+.-]*://[^/\s@:]*:[^/\s@]+@",  # an address with a password
            r"-----BEGIN [A-Z ]*PRIVATE KEY",
            r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.",  # JWT
            r"\b(?:sk|pk|rk)[-_](?:live|test|proj|ant|or)[-_]",
            r"\bsk-[A-Za-z0-9_-]{16,}",
            r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b",
            r"\bAIza[0-9A-Za-z_-]{30,}",
            r"\bya29\.[0-9A-Za-z_-]{10,}",
            r"\bgh[pousr]_[0-9A-Za-z]{20,}",
            r"\bgithub_pat_[0-9A-Za-z_]{20,}",
            r"\bglpat-[0-9A-Za-z_-]{16,}",
            r"\bxox[abeoprs]-[0-9A-Za-z-]{10,}",
            r"\bSG\.[0-9A-Za-z_-]{16,}\.",
            r"\b(?:hf|npm|dop_v1|shpat|whsec)_[0-9A-Za-z]{16,}",
            r"\bpypi-[0-9A-Za-z_-]{16,}",
            r"\b[MN][A-Za-z0-9_-]{23}\.[\w-]{6}\.[\w-]{27}",
            r"://hooks\.slack\.com/services/\w+",
            r"\b(?:Bearer|Basic) [A-Za-z0-9+/_.=-]{16,}",
            r"AccountKey=[A-Za-z0-9+/=]{20,}",
        )
    )
)
SECRET_NAME: Final = re.compile(
    r"(?:^|_)(?:passwords?|passwd|pwd|secrets?|tokens?|api_?keys?|private_?keys?"
    r"|access_?keys?|credentials?|auth_?keys?)$",
    re.I,
)
# Counted in tokens, not secret: max_tokens, token_count.
COUNTED: Final = re.compile(r"(?:max|min|num|count|input|output|total|used)_?tokens?$")
REFERS: Final = re.compile(
    r"^(?:\$\{?\w+\}?|(?:env|vault|op|ssm|sm):.*|[A-Z][A-Z0-9_]*)$"
)
DENSE: Final = re.compile(r"[A-Za-z0-9+/_=-]{28,}")


@lru_cache(4096)  # specs say the same few words again and again
def is_secret_name(name: str) -> bool:
    """True for a key or field that is called like a secret."""
    return bool(SECRET_NAME.search(name)) and not COUNTED.search(name.lower())


@lru_cache(4096)
def looks_secret(text: str) -> bool:
    """True for a text with the shape of a credential, or one that only chance writes."""
    return bool(SHAPES.search(text)) or is_random(text)


def is_random(text: str) -> bool:
    """A long word of mixed characters without order: no hash, path, name or sentence."""
    if not DENSE.fullmatch(text) or re.fullmatch(
        r"[0-9a-fA-F-]+|[a-z_]+|[A-Z_]+", text
    ):
        return False
    kinds = (r"[a-z]", r"[A-Z]", r"[0-9]")
    if not all(re.search(kind, text) for kind in kinds) or text.count("/") > 1:
        return False
    counts = Counter(text).values()
    entropy = -sum(n / len(text) * math.log2(n / len(text)) for n in counts)
    return entropy > 4.0


def find_secrets(data: dict[str, Any]) -> Iterator[Finding]:
    """Every key and value that looks like a secret."""
    waiting: list[tuple[Path, Any]] = [((), data)]
    while waiting:
        path, node = waiting.pop()
        if isinstance(node, dict):
            for key, value in node.items():
                here = (*path, key)
                if looks_secret(key):
                    yield secret(here, "key", "this key")
                waiting.append((here, value))
        elif isinstance(node, list):
            waiting += [((*path, index), value) for index, value in enumerate(node)]
        elif isinstance(node, str) and is_secret(path, node):
            yield secret(path, "value", "this value")


def is_secret(path: Path, text: str) -> bool:
    """A value's own shape decides, or the name of its key when it is no reference."""
    if looks_secret(text):
        return True
    field = path[-2] if path[-1] == "default" and len(path) > 1 else path[-1]
    if not isinstance(field, str) or not is_secret_name(field):
        return False
    is_type = "payload" in path and bool(FIELD_TYPE.regex.search(text))
    is_state = path[:1] in (("env",), ("record",))
    return bool(text) and not (is_type or is_state or REFERS.match(text))


def secret(path: Path, at: Any, what: str) -> Finding:
    """The finding; the value is not in it."""
    return Finding(
        values.SECRET,
        path,
        f"{what} looks like a secret; a spec is no place for one.",
        "delete it here, rotate it since it has been written down, and let the code"
        " read it from an environment variable",
        at=at,
    )
