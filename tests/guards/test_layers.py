"""The rule of the layers, as ARCHITECTURE.md draws it, read from the imports."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "src" / "qgen"

# From the bottom up. A name is a module or a package directly below qgen.
LAYERS = [
    {"diagnostics", "data", "files", "signature", "sorting"},
    {"model"},
    {"spec"},
    {"resolve", "targets"},
    {"compile", "front", "render", "format"},
    {"emit"},
    {"commands", "cli", "noop", "__main__", "__init__"},
]
RANK = {name: rank for rank, names in enumerate(LAYERS) for name in names}


def rank(name: str) -> int:
    """A module that is not listed is one of the compiler's."""
    return RANK.get(name, RANK["compile"])


# Below emit nothing writes or asks for the time, the network or a random number. (The
# formatter starts processes.)
PURE_UP_TO = RANK["compile"]
IMPURE = {"format"}
IMPURE_MODULES = {
    "http",
    "random",
    "secrets",
    "shutil",
    "socket",
    "subprocess",
    "tempfile",
    "time",
    "urllib.request",
}
IMPURE_CALLS = {
    "mkdir",
    "now",
    "rename",
    "rmdir",
    "today",
    "touch",
    "unlink",
    "utcnow",
    "uuid1",
    "uuid4",
    "write_bytes",
    "write_text",
}


def modules() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def room(path: Path) -> str:
    """The name below qgen that a module belongs to."""
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def pure_modules() -> list[Path]:
    rooms = [(path, room(path)) for path in modules()]
    return [p for p, r in rooms if rank(r) <= PURE_UP_TO and r not in IMPURE]


def imports(path: Path, root: Path = PACKAGE) -> Iterator[str]:
    """The absolute name of everything a module imports, wherever in it."""
    package = ["qgen", *path.relative_to(root).parts[:-1]]
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            prefix = ".".join([*base, *filter(None, [node.module])])
            yield from (f"{prefix}.{alias.name}" for alias in node.names)


def named(path: Path) -> str:
    return str(path.relative_to(PACKAGE))


@pytest.mark.parametrize("path", modules(), ids=named)
def test_a_module_imports_nothing_of_a_higher_layer(path):
    for name in imports(path):
        top, _, rest = name.partition(".")
        target = rest.partition(".")[0]
        if top == "qgen":
            assert rank(target) <= rank(room(path)), f"{named(path)} imports {name}"


@pytest.mark.parametrize("path", pure_modules(), ids=named)
def test_what_compiles_neither_writes_nor_looks_at_the_clock(path):
    for name in imports(path):
        bad = {m for m in IMPURE_MODULES if name == m or name.startswith(f"{m}.")}
        assert not bad, f"{named(path)} imports {name}"
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if not isinstance(node, ast.Call):
            continue
        if isinstance(node.func, ast.Attribute):
            assert (
                node.func.attr not in IMPURE_CALLS
            ), f"{named(path)}:{node.lineno} calls {node.func.attr}()"
        elif isinstance(node.func, ast.Name) and node.func.id == "open":
            modes = [*node.args[1:2], *(k.value for k in node.keywords)]
            texts = [m.value for m in modes if isinstance(m, ast.Constant)]
            assert not any(
                set(str(text)) & set("wax+") for text in texts
            ), f"{named(path)}:{node.lineno} opens a file to write"


@pytest.mark.parametrize(
    ("file", "source", "expected"),
    [
        ("spec/load.py", "from ..emit import write", ["qgen.emit.write"]),
        ("spec/load.py", "from . import spans", ["qgen.spec.spans"]),
        ("cli.py", "from .commands.build import run", ["qgen.commands.build.run"]),
        ("cli.py", "def f():\n    import qgen.emit", ["qgen.emit"]),
    ],
)
def test_the_reader_of_imports_sees_every_form(file, source, expected, tmp_path):
    path = tmp_path / file
    path.parent.mkdir(exist_ok=True)
    path.write_text(source)
    assert list(imports(path, tmp_path)) == expected
