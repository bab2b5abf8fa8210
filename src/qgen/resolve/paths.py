"""Folders of a spec: relative, with ``/``."""

from __future__ import annotations


def clean(path: str) -> str:
    """A path without steps that go nowhere; the spec's own folder is ``.``."""
    parts = [part for part in path.split("/") if part not in ("", ".")]
    return "/".join(parts) or "."


def below(folder: str, name: str) -> str:
    """A name in a folder."""
    return clean(f"{folder}/{name}")


def meet(one: str, other: str) -> bool:
    """True when one folder is, or is inside, the other; disks may ignore case."""
    if "." in (one, other):
        return True
    first, second = (f"{path.casefold()}/" for path in (one, other))
    return first.startswith(second) or second.startswith(first)
