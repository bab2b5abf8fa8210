"""``qgen eject FILE``: a generated file becomes its owner's; builds leave it alone."""

from __future__ import annotations

import os
from pathlib import Path

from .. import lock
from ..emit.private import Private, Unwritable
from ..emit.tree import Tree
from ..signature import without_header
from .stop import Stop


def run(file: str, spec: str) -> int:
    """Hand a file over: its line in the lock says so, and its header, if any, goes.

    One that is written once is its owner's anyway; ejected, it may be deleted too.

    The lock comes first: a kill between the two leaves a file that is owned already and
    still has its header, which does no harm.
    """
    root = Path(spec).absolute().parent
    tree, private = Tree(root), Private(root)
    path = _relative(root, file)
    try:
        with private.alone(lambda: print("qgen: waiting for another qgen build")):
            committed = tree.look(lock.NAME).text or ""
            found = tree.look(path)
            kind = lock.parse(committed).kinds.get(path)
            if kind == "ejected":
                raise Stop(f"{path} is yours already")
            if kind not in ("managed", "once") or found.text is None:
                raise Stop(f"{path} is not a file that {lock.NAME} lists as managed")
            text = committed.replace(f"{kind} {path}\n", f"ejected {path}\n")
            with private.stage() as stage:
                _replace(stage / "lock", text, tree.at(lock.NAME))
                _replace(stage / "file", without_header(found.text), tree.at(path))
    except (OSError, Unwritable) as error:
        raise Stop(f"cannot eject {path}: {error}") from None
    print(f"{path} is yours now; builds leave it alone.")
    print(f"To give it back, delete its line in {lock.NAME} and build with --force.")
    return 0


def _replace(staged: Path, text: str, target: Path) -> None:
    staged.write_bytes(text.encode("utf-8", "surrogateescape"))
    os.replace(staged, target)


def _relative(root: Path, file: str) -> str:
    """The path below the spec's folder, of one given from here or from there."""
    for place in (Path(file).absolute(), root / file):
        if place.is_relative_to(root) and place.exists():
            return place.relative_to(root).as_posix()
    raise Stop(f"{file} does not exist below {root}")
