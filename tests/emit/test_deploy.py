"""deploy/: what compose accepts, one service per worker, every time from one place."""

import json
import re
from dataclasses import replace
from pathlib import Path, PurePosixPath

import compose_spec
import pytest
import trees
import yaml
from emit.projects import SPEC, Project

from qgen.compile import compile
from qgen.deploy import COMPOSE, short_stops
from qgen.resolve import times
from qgen.resolve.units import span
from qgen.targets import TARGETS

ROOT = Path(__file__).parents[2]
TEMPLATES = ROOT / "templates"
SPECS = [*sorted((ROOT / "examples" / "specs").glob("*.toml")), trees.SPEC]

# Names that YAML, a shell or Python would take for something else.
ODD = """\
schema_version = 1
[project]
name = "on"
output = "."
handlers = "null"
[record]
url_env = "NO"
[redis]
url_env = "if"
[shutdown]
grace = "1h1m1500ms"
[workers.yes]
recycle_after_jobs = 1
[workers.null]
on_start = "a.b:c"
on_stop = "a.b:d"
[env]
true = "workers.yes.concurrency"
None = "retention.completed"
[jobs.a]
description = "${PATH} {{ 7 }} # \\"quoted\\" 'it'\\nnew: line"
"""
TEXTS = {path.stem: path.read_text("utf-8") for path in SPECS} | {"odd": ODD}


def made(text, target="arq"):
    done = compile(text.encode(), "queue.toml", target)
    assert done.model is not None, done.diagnostics
    return done


def compose(done):
    """The compose file as data, after compose's own rules have accepted it."""
    (text,) = (file.text for file in done.files if file.path == COMPOSE)
    data = yaml.safe_load(text)
    compose_spec.PyCompose.from_yaml(yaml.safe_dump(data)).validate()
    return data


def seconds(text):
    return compose_spec.parse_duration(text)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_compose_runs_each_worker(text, target):
    done = made(text, target)
    model, services = done.model, compose(done)["services"]
    command = ["python", "-m", model.project.package]
    assert services["migrate"]["command"] == [*command, "migrate"]
    assert services["migrate"]["restart"] == "no"
    workers = {f"worker-{worker.name}" for worker in model.workers}
    assert set(services) - {"redis"} == {"migrate", *workers}
    for worker in model.workers:
        service = services[f"worker-{worker.name}"]
        assert service["command"] == [*command, "worker", worker.name]
        assert service["restart"] == "always"
        assert service["depends_on"]["migrate"] == {
            "condition": "service_completed_successfully"
        }
        assert service["healthcheck"]["test"] == ["CMD", *command, "health"]
        assert seconds(service["stop_grace_period"]) == model.times.stop
        assert seconds(service["healthcheck"]["timeout"]) == model.times.health_timeout


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_secrets_come_from_the_environment_only(text):
    """Every variable of the package, and what has a value here shows no secret."""
    done = made(text)
    model, services = done.model, compose(done)["services"]
    wanted = {model.record.url_env, model.redis.url_env, model.redis.ca_file_env}
    wanted |= {each.variable for each in model.overrides}
    for name, service in services.items():
        if name == "redis":
            assert "environment" not in service
            continue
        given = dict(service["environment"])
        spool = given.pop(f"{model.project.name.upper()}_SPOOL", None)
        assert spool == ("/data/spool" if model.agents else None)
        assert set(given) == wanted - {None}
        for variable, value in given.items():
            inside = re.fullmatch(r"\$\{(\w+):[-?](.*)\}", value)
            assert inside and inside[1] == variable
            assert "@" not in inside[2]


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_the_image_holds_the_package_and_its_handlers(text):
    """What it copies is there after a build, and it copies no folder that holds all."""
    done = made(text)
    paths = {file.path for file in done.files}
    (image,) = (file.text for file in done.files if file.path.endswith("Dockerfile"))
    copied = re.findall(r"^COPY (\S+) \S+$", image, re.MULTILINE)
    for source in copied:
        assert source != "."
        assert any(path == source or path.startswith(f"{source}/") for path in paths)
    package = f"{done.model.project.output}/{done.model.project.package}"
    (command,) = re.findall(r"^CMD (\[.*\])$", image, re.MULTILINE)
    worker = json.loads(command)[4:]
    names = [each.name for each in done.model.workers]
    assert worker == [] if len(names) == 1 or "main" in names else worker[0] in names
    assert PurePosixPath(package) / "requirements.txt" == PurePosixPath(copied[0])


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_all_times_agree(text, target):
    """And each rule is broken by a time that does not."""
    model = made(text, target).model
    assert list(times.broken(model)) == []
    for change in (
        {"stop": model.grace + times.LENIENCY + times.FINAL_WRITES},
        {"health_timeout": 1.0},
        {"health_interval": model.stall.heartbeat / 2},
        {"health_start": model.times.recovered - 1},
    ):
        wrong = replace(model, times=replace(model.times, **change))
        assert len(list(times.broken(wrong))) == 1, change
    settings = (replace(model.target.settings[0], redelivers=model.times.acted - 1),)
    wrong = replace(model, target=replace(model.target, settings=settings))
    assert len(list(times.broken(wrong))) == 1


@pytest.mark.parametrize("more", ["", '[stall]\nafter = "30m"\n'], ids=["", "stall"])
def test_celery_puts_nothing_back_before_recovery_has_acted(more):
    """Its timer is declared, so the rule above holds for it, whatever is the longest."""
    model = made(f"{SPEC}\n{more}", "celery").model
    (timer,) = [each for each in model.target.settings if each.redelivers is not None]
    assert (timer.name, timer.value) == ("visibility_timeout", span(timer.redelivers))
    assert timer.redelivers > model.times.acted
    endless = made(f'{SPEC}\n[jobs.long]\ntimeout = "none"\n', "celery").model
    assert endless.times.acted > times.WITHOUT_TIMEOUT


def test_the_times_are_the_engines():
    """What the compiler reckons with is what the package takes."""
    for file, name, value in (
        ("runner", "LENIENCY", times.LENIENCY),
        ("process", "FINAL_WRITES", times.FINAL_WRITES),
        ("hooks", "START_LIMIT", times.START_LIMIT),
        ("hooks", "STOP_LIMIT", times.STOP_LIMIT),
        ("health", "_PATIENCE", times.HEALTH_PATIENCE),
    ):
        text = (TEMPLATES / "package" / f"{file}.py").read_text("utf-8")
        assert f"\n{name}: Final = {value}" in text


def test_on_stop_lengthens_the_stop_period():
    plain = made(SPEC).model.times.stop
    hooked = made(f'{SPEC}\n[workers.main]\non_stop = "a:b"\n').model.times.stop
    assert hooked == plain + times.STOP_LIMIT


@pytest.mark.parametrize(
    ("line", "is_short"),
    [
        ("stop_grace_period: 54s", True),
        ("stop_grace_period: 55s", False),
        ("  stop_grace_period: '1m'  # ours", False),
        ('  stop_grace_period: "0.5m"', True),
        ("stop_grace_period: 1h", False),
        ("stop_grace_period: 500ms", True),
        ("# stop_grace_period: 5s", False),
        ("stop_grace_period: ${STOP}", False),
    ],
)
def test_a_stop_period_that_is_too_short(line, is_short):
    found = list(short_stops(f"services:\n  a:\n{line}\n", 55.0))
    assert bool(found) == is_short
    for short in found:
        shown = line[short.column - 1 :][: len(short.written)]
        assert (short.line, short.needed, shown) == (3, "55s", short.written)


def test_the_users_compose_file_is_warned_about_and_left_alone(tmp_path, capsys):
    """Written once; when the spec outgrows it, build and check say where and what."""
    project = Project.at(tmp_path)
    assert project.build() == 0
    project.change(COMPOSE, "stop_grace_period: 55s", "stop_grace_period: 1m")
    kept = project.read(COMPOSE)
    assert (project.build(), project.check()) == (0, 0)
    assert "QG915" not in capsys.readouterr().err
    project.write("queue.toml", f'{SPEC}\n[shutdown]\ngrace = "1m"\n')
    assert project.build() == 0
    said = capsys.readouterr().err
    line = kept[: kept.index("1m\n")].count("\n") + 1
    assert f"{COMPOSE}:{line}:24: warning[QG915]" in said
    assert "write stop_grace_period: 1m25s" in said
    assert project.check() == 0
    assert "QG915" in capsys.readouterr().err
    assert project.read(COMPOSE) == kept


def test_a_project_may_do_without_them(tmp_path):
    """Ejected and deleted, a file stays away; a deleted one is made again."""
    project = Project.at(tmp_path)
    assert project.build() == 0
    assert project.qgen("eject", COMPOSE).returncode == 0
    project.path(COMPOSE).unlink()
    project.path("deploy/Dockerfile").unlink()
    assert (project.build(), project.check()) == (0, 0)
    assert not project.path(COMPOSE).exists()
    assert project.path("deploy/Dockerfile").exists()


def test_compose_rules_are_those_of_compose():
    """What stands behind these tests does refuse."""
    data = compose(made(SPEC))
    data["services"]["worker-main"]["stop_grace_perod"] = "1s"
    with pytest.raises(ValueError, match="stop_grace_perod"):
        compose_spec.PyCompose.from_yaml(yaml.safe_dump(data)).validate()
