"""Options and arguments only: every command is imported when it is called."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, Final

import click

from . import __version__

FORMATS: Final = ("text", "json", "github", "sarif")


def main() -> int:
    """Run a command; 0 clean, 1 findings, 2 usage or disk, 3 a bug in qgen."""
    try:
        code = group.main(prog_name="qgen", standalone_mode=False)
    except (click.exceptions.Abort, KeyboardInterrupt):
        print("qgen: interrupted", file=sys.stderr)
        return 130
    except click.ClickException as error:
        error.show()
        return 2
    except BrokenPipeError:
        sys.stdout = None
        return 0
    except Exception as error:
        return _failed(error)
    return code if isinstance(code, int) else 0


def _failed(error: Exception) -> int:
    from .commands.stop import Stop

    if isinstance(error, Stop):
        print(f"qgen: {error}", file=sys.stderr)
        return 2
    import traceback

    traceback.print_exc()
    print(
        "qgen: this is a bug in qgen; please report it with the lines above",
        file=sys.stderr,
    )
    return 3


def _spec(command: Callable[..., Any]) -> Callable[..., Any]:
    """The argument and the options of a command that reads a spec."""
    for decorate in (
        click.option("--quiet", "-q", is_flag=True, help="Say only what is wrong."),
        click.option("--strict", is_flag=True, help="Warnings make the exit code 1."),
        click.option(
            "--format",
            type=click.Choice(FORMATS),
            default="text",
            help="How diagnostics are printed; text goes to stderr, the rest to stdout.",
        ),
        click.option(
            "--target", metavar="NAME", help="The backend, if not the spec's."
        ),
        click.argument("spec", default="queue.toml", type=click.Path()),
    ):
        command = decorate(command)
    return command


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="qgen", message="%(prog)s %(version)s")
def group() -> None:
    """Generate a durable job queue worker from a short description."""


@group.command()
@_spec
@click.option(
    "--force",
    is_flag=True,
    help="Overwrite edited files (copies are kept); no row waits for an old payload.",
)
def build(force: bool, **options: Any) -> int:
    """Write the package, its tests and the lock; nothing where nothing changed."""
    from .commands import build

    return build.run(force=force, **options)


@group.command()
@_spec
def check(**options: Any) -> int:
    """Say where the files on disk are not what the spec makes; writes nothing."""
    from .commands import check

    return check.run(**options)


@group.command()
@_spec
@click.option("--diff", is_flag=True, help="Show what would change in each file.")
def plan(diff: bool, **options: Any) -> int:
    """Show what a build would do, and the plan of the queue; writes nothing."""
    from .commands import plan

    return plan.run(diff=diff, **options)


@group.command()
@_spec
@click.option("--interval", default=0.5, metavar="SECONDS", help="How often to look.")
def watch(**options: Any) -> int:
    """Build again whenever the spec changes, until interrupted."""
    from .commands import watch

    return watch.run(**options)


@group.command()
@click.argument("folder", default=".", type=click.Path())
@click.option("--name", help="The project's name, if not the folder's.")
def init(folder: str, name: str | None) -> int:
    """Write a first queue.toml, what git should know, and a pre-commit hook."""
    from .commands import init

    return init.run(folder, name)


@group.command()
@click.argument("file", type=click.Path())
@click.option(
    "--spec", default="queue.toml", type=click.Path(), help="Whose file it is."
)
def eject(file: str, spec: str) -> int:
    """Take a generated file over: builds leave it alone from now on."""
    from .commands import eject

    return eject.run(file, spec)


@group.command()
@click.argument("agent")
@click.option("--by", required=True, metavar="OWNER", help="The agent's owner.")
@click.option("--note", default="", metavar="TEXT", help="Why.")
@click.option(
    "--spec", default="queue.toml", type=click.Path(), help="Whose agent it is."
)
def approve(agent: str, by: str, note: str, spec: str) -> int:
    """Let an agent spend what the spec says, in its owner's name."""
    from .commands import approve

    return approve.run(agent, by, note, spec)


@group.command()
@click.argument("code")
def explain(code: str) -> int:
    """Explain a diagnostic, such as QG401."""
    from .commands import explain

    return explain.run(code)


@group.command()
@click.argument("kind", default="queue", type=click.Choice(["queue", "diagnostics"]))
def schema(kind: str) -> int:
    """Print the JSON Schema of a spec, or of --format json."""
    from .commands import schema

    return schema.run(kind)


@group.command()
@click.option("--format", type=click.Choice(["text", "json"]), default="text")
def targets(format: str) -> int:
    """Print the backends and what each of them can do."""
    from .commands import targets

    return targets.run(format)


@group.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> int:
    """Print what turns on completion, to be sourced by the shell's start file."""
    from click.shell_completion import get_completion_class

    found = get_completion_class(shell)
    if found is None:
        return 2
    print(found(group, {}, "qgen", "_QGEN_COMPLETE").source())
    return 0
