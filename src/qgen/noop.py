"""The fast path: a build or check whose every input is as it was last time.

A run that ended well is remembered in ``.qgen/`` with all it read and what it would say
if it ran again.  When nothing of that has changed, it is said again and nothing of the
compiler is imported.  Anything unexpected, a damaged memory too, is a miss: the answer
is never another one than the compiler's.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Iterable
from typing import Final

COMMANDS: Final = ("build", "check")
_WITH_VALUE: Final = ("--target", "--format")
_VERSION: Final = 2


def answer(arguments: list[str]) -> int | None:
    """Answer from memory and give the exit code; None when the command must run."""
    root = _root(arguments)
    if root is None:
        return None
    try:
        with open(_memory(root, arguments), "rb") as file:
            known = json.load(file)
        if not _holds(root, known):
            return None
        out, err, code = known["out"], known["err"], known["code"]
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    sys.stdout.write(out)
    sys.stderr.write(err)
    return int(code)


def remember(
    root: str,
    spec: str,
    paths: Iterable[str],
    absent: Iterable[str],
    tools: Iterable[str],
    said: tuple[str, str, int],
) -> None:
    """Keep what ``said`` (stdout, stderr, exit code) answers this process's arguments.

    ``paths`` are what the run read and ``absent`` what it missed, both relative to
    ``root``, as is ``spec``, which is among the former and changes most; ``tools`` are files whose change would change the answer.  Failing to
    remember is no failure.
    """
    arguments = sys.argv[1:]
    if _root(arguments) is None:
        return
    reading = sorted(paths)
    known = {
        "tools": {tool: _stamp(tool) for tool in tools},
        "paths": reading,
        "absent": sorted(absent),
        "spec": [spec, _digest(root, [spec])],
        "digest": _digest(root, reading),
        "out": said[0],
        "err": said[1],
        "code": said[2],
    }
    place = _memory(root, arguments)
    try:
        os.makedirs(os.path.dirname(place), exist_ok=True)
        with open(f"{place}.new", "w", encoding="utf-8") as file:
            json.dump(known, file)
        os.replace(f"{place}.new", place)
    except OSError:
        return


def _holds(root: str, known: dict[str, object]) -> bool:
    tools, paths, absent = known["tools"], known["paths"], known["absent"]
    assert isinstance(tools, dict) and isinstance(paths, list)
    assert isinstance(absent, list) and isinstance(known["spec"], list)
    spec, digest = known["spec"]
    return (
        _digest(root, [spec]) == digest  # first: an edit is told by it alone
        and all(_stamp(tool) == stamp for tool, stamp in tools.items())
        and not os.path.exists(os.path.join(root, ".qgen", "unfinished"))
        and not any(os.path.lexists(os.path.join(root, path)) for path in absent)
        and _digest(root, paths) == known["digest"]
    )


def _digest(root: str, paths: list[str]) -> str:
    """Of the paths and their bytes.  Raises OSError where one cannot be read."""
    digest = hashlib.sha256()
    for path in paths:
        with open(os.path.join(root, path), "rb", buffering=0) as file:
            data = file.read()
        digest.update(f"{path}\0{len(data)}\0".encode())
        digest.update(data)
    return digest.hexdigest()


def _stamp(path: str) -> list[int]:
    found = os.stat(path)
    return [found.st_mtime_ns, found.st_size]


def _memory(root: str, arguments: list[str]) -> str:
    """One memory per command line, Python and kind of terminal."""
    asked = [_VERSION, arguments, sys.version, sys.stderr.isatty(), os.getcwd()]
    asked.append(sorted(name for name in ("NO_COLOR",) if name in os.environ))
    name = hashlib.sha256(json.dumps(asked).encode()).hexdigest()[:16]
    return os.path.join(root, ".qgen", "seen", f"{name}.json")


def _root(arguments: list[str]) -> str | None:
    """The spec's folder, None for a command line that is not understood at a glance."""
    if not arguments or arguments[0] not in COMMANDS:
        return None
    spec, rest = "queue.toml", iter(arguments[1:])
    for argument in rest:
        if argument in _WITH_VALUE:
            next(rest, None)
        elif argument in ("--force", "--help", "-h"):
            return None
        elif not argument.startswith("-"):
            spec = argument
    return os.path.dirname(os.path.abspath(spec))
