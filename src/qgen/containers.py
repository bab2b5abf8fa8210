"""What the templates of the deploy files ask of the model."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Final

from . import handlers, literal, view
from .literal import Code
from .model import Model
from .resolve.units import span

_DATA: Final = "/data"  # the volume: what must outlive a container


def addresses(model: Model) -> list[str]:
    """The variables that must be set."""
    named = [model.record.url_env] if model.record.dialect != "sqlite" else []
    if not has_redis(model):
        named.append(model.redis.url_env)
    if model.redis.ca_file_env is not None:
        named.append(model.redis.ca_file_env)
    return [f"{name} must be set" for name in named] or ["none has to be set"]


def has_redis(model: Model) -> bool:
    """Whether the file brings a Redis: not where the spec demands TLS."""
    return model.redis.tls is not True and model.redis.ca_file_env is None


def environment(model: Model) -> Iterator[Code]:
    """A line for each variable: addresses, the spool, what may be overridden."""
    record, redis = model.record, model.redis
    if record.dialect == "sqlite":
        file = f"sqlite:///{_DATA}/{plain(model.project.name)}.db"
        yield _default(record.url_env, file)
    else:
        yield _needed(record.url_env, "the address of the database")
    if has_redis(model):
        yield _default(redis.url_env, "redis://redis:6379/0")
    else:
        yield _needed(redis.url_env, "the address of Redis")
    if redis.ca_file_env is not None:
        yield _needed(redis.ca_file_env, "the path of the CA file, once it is mounted")
    if model.agents:
        spool = literal.yaml(f"{_DATA}/spool")
        yield Code(f"{literal.yaml(model.project.name.upper() + '_SPOOL')}: {spool}")
    for each in model.overrides:
        yield _default(each.variable, "")


def _default(variable: str, value: str) -> Code:
    return Code(f'"{plain(variable)}": "${{{variable}:-{value}}}"')


def _needed(variable: str, what: str) -> Code:
    return Code(f'"{plain(variable)}": "${{{variable}:?set it to {what}}}"')


def kept(model: Model) -> str:
    """What must outlive a container, in words; nothing where nothing must."""
    found = []
    if model.record.dialect == "sqlite":
        found.append("The record")
    if model.agents:
        found.append("what a worker learned of a paid call while the database was away")
    text = ", and ".join(found)
    return text and f"{text[0].upper()}{text[1:]}."


def stop_note(model: Model) -> str:
    """Where the stop period comes from."""
    return f"{span(model.grace)} of shutdown.grace, and what a worker does after it."


def requirements(model: Model) -> Code:
    """The path of the package's list."""
    return plain(f"{view.package_path(model)}/requirements.txt")


def copied(model: Model) -> list[Code]:
    """What the image needs of the project: never all of it, which may hold secrets."""
    paths = [model.project.output]
    if model.project.output == ".":
        module, *_ = handlers.places(model, model.project.handlers)
        paths = [model.project.package, module.partition("/")[0]]
    return [Code(f"COPY {plain(path)} {path}") for path in dict.fromkeys(paths)]


def python_path(model: Model) -> Code:
    """What follows the folder of the image in PYTHONPATH."""
    output = model.project.output
    return Code("" if output == "." else f"/{plain(output)}")


def command(model: Model) -> Code:
    """What the image runs when it is told nothing: a worker, in exec form."""
    word = view.worker_word(model).split()
    words = ["python", "-m", model.project.package, "worker", *word]
    return Code(f"[{', '.join(map(json.dumps, words))}]")


def plain(text: str) -> Code:
    """A name or a path as YAML and Dockerfiles take it: the language lets no other in."""
    if not re.fullmatch(r"[A-Za-z0-9_./-]+", text):
        raise ValueError(f"not a plain name: {text!r}")
    return Code(text)
