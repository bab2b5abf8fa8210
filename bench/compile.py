"""The compiler against its own table, beside its nearest peers on the same input.

Every figure is a process of its own, from its start to its end. What is compared takes
turns, so that a busy machine is as unkind to the one as to the other.
"""

from __future__ import annotations

import importlib.metadata
import os
import platform
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bench import report
from bench.many import PACKAGE, edited, schema, spec

TITLE = "The compiler"
JOBS = 1_000
SIZES = (10, 100, 1_000, 5_000)
REPS = 5
HEAVY = ("black", "jinja2", "jsonschema", "pydantic", "rich", "ruff")
LIBRARIES = ("black", "ruff", "datamodel-code-generator", "pydantic", "arq", "click")

QGEN = (sys.executable, "-m", "qgen")
BLACK = (sys.executable, "-m", "black", "--quiet", "--no-cache")
MODELS = (
    *(sys.executable, "-W", "ignore", "-m", "datamodel_code_generator"),
    *("--input", "schema.json", "--input-file-type", "jsonschema"),
    *("--output", "models.py", "--output-model-type", "pydantic_v2.BaseModel"),
)
LIBRARY = (sys.executable, "-c", "import pydantic, arq")
GENERATED = (sys.executable, "-c", f"import {PACKAGE}")
CLICK = (sys.executable, "-c", "import click")

# Names of the rows; each is a case of `cases`.
COLD, EDIT = "qgen build, cold", "qgen build, one job edited"
NOTHING, CHECK = "qgen build, nothing to do", "qgen check, nothing to do"
TREE, ONE = "black alone on that tree", "black alone, one process"
PEER, BUILTIN = "datamodel-code-generator", "datamodel-code-generator, its fastest"


class Failed(Exception):
    """A measured command did not do its work."""


@dataclass(frozen=True)
class Cost:
    """One process and all it started: seconds, and megabytes of the largest."""

    wall: float
    cpu: float
    memory: float


def usual() -> dict[str, str]:
    """The environment as users have it: Python keeps what it compiled."""
    return {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}


def run(command: Sequence[str], folder: Path, **env: str) -> Cost:
    """Run a command to its end."""
    with open(folder / ".said", "wb") as said:
        to_it = [(os.POSIX_SPAWN_DUP2, said.fileno(), each) for each in (1, 2)]
        code = f'cd {str(folder)!r} && exec "$@"'
        words = ["sh", "-c", code, "sh", *command]
        began = time.perf_counter()
        pid = os.posix_spawnp("sh", words, usual() | env, file_actions=to_it)
        _, status, usage = os.wait4(pid, 0)
        wall = time.perf_counter() - began
    if os.waitstatus_to_exitcode(status):
        words_said = (folder / ".said").read_text(errors="replace")
        raise Failed(f"{' '.join(command)}\n{words_said[-2000:]}")
    (folder / ".said").unlink()
    return Cost(wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


@dataclass
class Bench:
    """A folder with projects, and what each case cost so far."""

    root: Path
    costs: dict[str, list[Cost]] = field(default_factory=dict)

    def project(self, name: str, jobs: int) -> Path:
        """A new project with nothing but its spec."""
        folder = self.root / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        (folder / "queue.toml").write_text(spec(jobs), "utf-8")
        return folder

    def measure(self, case: str, command: Sequence[str], folder: Path) -> Cost:
        """Run it and keep the figures."""
        cost = run(command, folder)
        self.costs.setdefault(case, []).append(cost)
        return cost

    def wall(self, case: str) -> float:
        return statistics.median(cost.wall for cost in self.costs[case])

    def cpu(self, case: str) -> float:
        return statistics.median(cost.cpu for cost in self.costs[case])


def stamps(folder: Path) -> dict[Path, tuple[int, int]]:
    """When each file of a project was written, and its inode."""
    found = {path: path.stat() for path in folder.rglob("*") if path.is_file()}
    return {
        path: (stat.st_mtime_ns, stat.st_ino)
        for path, stat in found.items()
        if ".qgen" not in path.parts and path.name not in ("queue.toml", ".said")
    }


def once(bench: Bench, turn: int) -> int:
    """Every case one time, in turns; how many files the edit touched."""
    built, tree = bench.root / "built", bench.root / "tree"
    cold = bench.project(f"cold{turn}", JOBS)
    for case, command, folder in (
        (COLD, (*QGEN, "build", "--quiet"), cold),
        (TREE, (*BLACK, "src", "tests"), tree),
        (ONE, (*BLACK, "--workers", "1", "src", "tests"), tree),
        (PEER, MODELS, bench.root),
        (BUILTIN, (*MODELS, "--formatters", "builtin"), bench.root),
        ("import click", CLICK, bench.root),
        (NOTHING, (*QGEN, "build"), built),
        (CHECK, (*QGEN, "check"), built),
        ("python -c pass", (sys.executable, "-c", "pass"), bench.root),
        ("qgen --version", (*QGEN, "--version"), bench.root),
        ("import pydantic, arq", LIBRARY, built / "src"),
        ("import the package", GENERATED, built / "src"),
    ):
        bench.measure(case, command, folder)
    # The edit is made in the tree that was built just now.
    before = stamps(cold)
    (cold / "queue.toml").write_text(edited(JOBS), "utf-8")
    bench.measure(EDIT, (*QGEN, "build", "--quiet"), cold)
    after = stamps(cold)
    shutil.rmtree(cold)
    return sum(after[path] != before.get(path) for path in after)


def prepare(bench: Bench) -> None:
    """A built project with its memory, its modules compiled; what the peers work on."""
    built = bench.project("built", JOBS)
    for command in ("build", "build", "check", "check"):
        run((*QGEN, command), built)
    run(GENERATED, built / "src")
    for name in ("src", "tests"):
        shutil.copytree(built / name, bench.root / "tree" / name)
    (bench.root / "schema.json").write_text(schema(JOBS), "utf-8")


def imports(code: str, folder: Path) -> set[str]:
    """The top-level modules that a piece of Python leaves imported."""
    say = "import sys; open('.modules', 'w').write(' '.join(sys.modules))"
    run((sys.executable, "-c", f"{code}\n{say}"), folder)
    return {
        name.partition(".")[0] for name in (folder / ".modules").read_text().split()
    }


def growth(bench: Bench) -> list[tuple[int, float, float]]:
    """Jobs, seconds of processor and megabytes of a cold build of each size."""
    rows = []
    for jobs in SIZES:
        costs = []
        for _ in range(2):
            folder = bench.project("grown", jobs)
            costs.append(run((*QGEN, "build", "--quiet"), folder))
        best = min(costs, key=lambda cost: cost.cpu)
        rows.append((jobs, best.cpu, best.memory))
    shutil.rmtree(bench.root / "grown")
    return rows


def slope(rows: Sequence[tuple[int, float, float]]) -> float:
    """What a job costs between the two largest sizes, over what it costs below them."""
    (few, cheap, _), *_, (many, dear, _), (most, dearest, _) = rows
    return ((dearest - dear) / (most - many)) / ((dear - cheap) / (many - few))


def verdicts(
    bench: Bench,
    touched: int,
    grown: Sequence[tuple[int, float, float]],
    modules: Mapping[str, set[str]],
) -> list[str]:
    """The table of the design, line by line."""
    wall, cpu, say = bench.wall, bench.cpu, report.verdict
    cold = wall(COLD)
    heavy = len(modules["version"] & set(HEAVY))
    own = wall("import the package") - wall("import pydantic, arq")
    own_cpu = cpu("import the package") - cpu("import pydantic, arq")
    handlers = sum("handlers" in name for name in modules["package"])
    memory = max(cost.memory for cost in bench.costs[COLD])
    return [
        say(f"`qgen --version` imports of {', '.join(HEAVY)}", heavy, most=0.5),
        say(
            "nothing to build, over `import click`",
            wall(NOTHING) / wall("import click"),
            most=3,
        ),
        say(
            "nothing to check, over `import click`",
            wall(CHECK) / wall("import click"),
            most=3,
        ),
        say("one job edited, over the cold build", wall(EDIT) / cold, most=0.15),
        f"- the same of the processor: {cpu(EDIT) / cpu(COLD):.2f}, no bound",
        say("files written for it", touched, most=2),
        say("black alone, over the cold build", wall(TREE) / cold, least=3),
        say("black alone in one process, over it", wall(ONE) / cold, least=3),
        say("datamodel-code-generator, over it", wall(PEER) / cold, least=2),
        f"- its fastest formatter, not its default: {wall(BUILTIN) / cold:.2f}, no bound",
        say("peak memory in MB of a cold build", memory, most=200),
        say("a job's cost above 1,000 jobs, over below", slope(grown), most=1.5),
        say("seconds to import the package, over pydantic and arq", own, most=1),
        f"- the same of the processor: {own_cpu:.2f}, no bound",
        say("handlers imported with it", handlers, most=0.5),
    ]


def new_file() -> float:
    """Milliseconds to make a small file here, the median of 500."""
    took = []
    with tempfile.TemporaryDirectory() as folder:
        for number in range(500):
            began = time.perf_counter()
            with open(f"{folder}/{number}", "wb") as file:
                file.write(b"x" * 1000)
            took.append(time.perf_counter() - began)
    return statistics.median(took) * 1000


def conditions() -> str:
    versions = (f"{name} {importlib.metadata.version(name)}" for name in LIBRARIES)
    return "\n".join(
        (
            f"- {os.cpu_count()} cores, {platform.system()} {platform.machine()}; load"
            f" {report.LOAD_BEFORE:.1f} before the run, {os.getloadavg()[0]:.1f} after"
            f" it; making a file takes {new_file():.2f} ms",
            f"- Python {platform.python_version()}, {', '.join(versions)}",
        )
    )


def rows(bench: Bench) -> list[list[str]]:
    """Seconds by the clock and of the processor, and the largest process."""
    return [
        [
            case,
            report.spread([cost.wall for cost in costs], 2),
            report.spread([cost.cpu for cost in costs], 2),
            f"{max(cost.memory for cost in costs):.0f}",
        ]
        for case, costs in bench.costs.items()
    ]


def main(reps: int = REPS) -> str:
    with tempfile.TemporaryDirectory(prefix="qb-") as folder:
        bench = Bench(Path(folder))
        note("a project to begin with")
        prepare(bench)
        touched = 0
        for turn in range(reps):
            note(f"turn {turn + 1} of {reps}")
            touched = max(touched, once(bench, turn))
        note("growth")
        grown = growth(bench)
        version = "import sys; sys.argv = ['qgen', '--version']\nimport qgen.__main__\n"
        modules = {
            "version": imports(f"{version}qgen.__main__.main()", bench.root),
            "package": imports(f"import {PACKAGE}", bench.root / "built" / "src"),
        }
        bounds = "\n".join(verdicts(bench, touched, grown, modules))
        head = ["case", "seconds", "of the processor", "MB"]
        sizes = [[f"{n:,}", f"{cpu:.2f}", f"{memory:.0f}"] for n, cpu, memory in grown]
        return f"""\
A spec of {JOBS:,} jobs with five payload fields each. Medians of {reps} (least-most); the
megabytes are the largest process. The peer makes the {JOBS:,} payload models alone.

{report.table(head, rows(bench))}

Cold builds of other sizes, the better of two:

{report.table(["jobs", "seconds of the processor", "MB"], sizes)}

{bounds}

{conditions()}
"""


def note(text: str) -> None:
    print(f"compile: {text}", file=sys.stderr, flush=True)
