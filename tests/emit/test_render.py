"""What is rendered is exactly what black prints, and holds spec texts only as data."""

import ast
import datetime as dt
import re
import subprocess
import sys
import tempfile
from decimal import Decimal
from pathlib import Path
from uuid import UUID

import pytest
from emit import samples
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from qgen import compile as compiler
from qgen import format, literal, markdown, payload, sorting
from qgen.fit import fit
from qgen.model import Table

TEMPLATES = Path(__file__).parents[2] / "templates"
RUFF = [sys.executable, "-m", "ruff", "check", "--isolated", "--no-cache", "--quiet"]
SLOW = settings(
    deadline=None,
    max_examples=30,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],  # shrinking takes minutes
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


def rendered(model):
    """The rendered Python files of a model, by path; SQL holds nothing of the jobs."""
    files = compiler.files_of(model, "queue.toml")
    return {
        file.path: file.text
        for file in files
        if file.needs_proof and not file.path.endswith("statements.py")
    }


def finished(model):
    """Its files, and those that black changed."""
    texts = rendered(model)
    with tempfile.TemporaryDirectory() as place:
        return texts, format.finish(texts, Path(place), ENGINE)


@given(samples.models())
@SLOW
def test_every_file_is_black_exact_and_lint_free(model):
    texts, changed = finished(model)
    for path, text in texts.items():
        assert format.black(text) == changed.get(path, text), path
        # Only a union too long for its line is left to black.
        assert path not in changed or "] | None" in text, path


@given(st.lists(samples.WORDS, min_size=1, max_size=30, unique=True))
@settings(deadline=None, max_examples=20)
def test_names_of_any_length_fit(names):
    jobs = [
        samples.job(
            f"{name}{'x' * (40 - len(name))}" if index % 2 else name,
            class_name=f"C{index}",
        )
        for index, name in enumerate(names)
    ]
    model = samples.model(*{job.name: job for job in jobs}.values())
    assert finished(model)[1] == {}


@pytest.mark.parametrize("length", range(1, 64))
def test_a_field_of_any_length_fits(length):
    name = ("f" * length)[:63]
    for kind in ("str", "datetime", "json"):
        field = samples.m.Field(
            name,
            samples.m.DictOf(samples.m.ListOf(samples.m.Scalar(kind))),
            samples.m.Default(None),
            samples.m.Constraints(max_length=10),
        )
        line = payload.body((field,))
        text = f"class A:\n{line}\n"
        assert format.black(text) == text


@pytest.mark.parametrize("length", [60, 74, 75, 76, 200])
@pytest.mark.parametrize("nullable", [False, True])
def test_a_default_of_any_length_fits(length, nullable):
    kind = samples.m.Scalar("str")
    field = samples.m.Field(
        "f",
        samples.m.Optional(kind) if nullable else kind,
        samples.m.Default("w" * length),
        samples.m.Constraints(),
    )
    text = f"class A:\n{payload.body((field,))}\n"
    assert format.black(text) == text


# --- texts are data ---------------------------------------------------------------

CALLED = {
    *("Agent", "ConfigDict", "Field", "Job", "Project", "Queue", "Retry", "Spend"),
    *("Schedule", "Worker"),
    *("Decimal", "UUID", "datetime", "date", "timezone", "timedelta"),
    *("NotImplementedError", "Path", "resolve"),
}
ENGINE = [
    f"src/support_queue/{name}.py"
    for name in ("client", "definitions", "errors", "runner")
]


@given(samples.models())
@SLOW
def test_no_text_of_a_spec_becomes_code(model):
    for path, text in rendered(model).items():
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Call):
                called = ast.unparse(node.func).rpartition(".")[2]
                assert called in CALLED, f"{path}: {called}"
            if isinstance(node, ast.Import | ast.ImportFrom):
                assert getattr(node, "module", "") not in ("os", "sys"), path


@given(samples.models())
@SLOW
def test_no_text_of_a_spec_breaks_the_plan(model):
    files = compiler.files_of(model, "queue.toml\n-->\n# x")
    (plan,) = (file.text for file in files if file.path.endswith("/QUEUE.md"))
    lines = plan.split("\n")
    assert [line for line in lines if line.startswith("#")] == HEADINGS
    assert lines[0].endswith(" -->") and lines[0].count("-->") == 1
    columns = 0
    for line in lines:
        if line.startswith("|"):
            cells = len(re.findall(r"(?<!\\)\|", line)) - 1
            assert columns in (0, cells), line
        columns = cells if line.startswith("|") else 0
        assert "<" not in SPAN.sub("", line.removeprefix("<!--")), line


SPAN = re.compile(r"(?<!`)(`+)(?!`).*?(?<!`)\1(?!`)")  # `code` in Markdown
HEADINGS = [
    "# The queue of support",
    "## BASIS",
    "## WORKER PLAN",
    "## JOB STATES",
    "## RECOVERY AND DEAD-LETTER",
    "## FAILURE CHECKLIST",
    "## TEST CASES",
    "## NEXT STEP",
]
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | samples.TEXTS
    | st.decimals(allow_nan=False)
    | st.uuids()
    | st.dates()
    | st.datetimes(
        timezones=st.sampled_from([dt.UTC, dt.timezone(-dt.timedelta(1.0 / 24))])
    ),
    lambda inner: st.lists(inner, max_size=3) | st.lists(inner, max_size=3).map(tuple),
    max_leaves=5,
)


@given(VALUES)
def test_a_literal_evaluates_to_its_value(value):
    names = {"Decimal": Decimal, "UUID": UUID, "dt": dt}
    assert eval(literal.literal(value), names) == value


@given(samples.TEXTS)
def test_a_table_is_a_dict(text):
    table = Table((("a", text), (f"b{text}", None)))
    assert eval(literal.literal(table)) == {"a": text, f"b{text}": None}


@given(samples.TEXTS)
def test_a_docstring_says_what_the_text_says(text):
    code = literal.docstring(text)
    assert (
        eval(code).split()
        == [word for line in text.splitlines() for word in line.split()]
        or not text.isprintable()
    )
    source = f"class A:\n    {code}\n\n    x: int\n"
    if text.strip():
        assert format.black(source) == source


@given(samples.TEXTS)
def test_a_comment_stays_on_its_line(text):
    for line in (literal.comment(text), markdown.cell(text), markdown.code(text)):
        assert len(line.splitlines()) <= 1
        assert "-->" not in literal.comment(text)


@given(samples.TEXTS)
def test_a_cell_cannot_leave_its_table(text):
    assert not re.search(r"(?<!\\)\|", markdown.cell(text))
    assert not re.search(r"(?<!\\)[<>]", markdown.cell(text))
    assert not re.search(r"(?<!\\)\|", markdown.code(text))


@pytest.mark.parametrize("text", ["", "1a", "a-b", "a.b", "class", "é", "a\n"])
def test_only_identifiers_are_names(text):
    with pytest.raises(ValueError):
        literal.name(text)


def test_printing_a_plain_text_raises():
    from qgen.render import _environment

    with pytest.raises(TypeError, match="without a filter"):
        _environment().from_string("{{ text }}").render(text="import os")
    with pytest.raises(TypeError, match="without a filter"):
        _environment().from_string("{{ text ~ '' }}").render(text=literal.literal("a"))


def test_rendered_files_are_a_closed_list():
    found = {
        path.relative_to(TEMPLATES).as_posix()
        for path in TEMPLATES.rglob("*.j2")
        if path.parent.name != "migrations"
    }
    assert found == {
        "celery/knobs.py.j2",
        "deploy/Dockerfile.j2",
        "deploy/compose.yaml.j2",
        "handler.py.j2",
        "handlers.py.j2",
        "package/QUEUE.md.j2",
        "package/__init__.py.j2",
        "package/jobs/__init__.py.j2",
        "package/jobs/job.py.j2",
        "package/registry.py.j2",
        "package/requirements.txt.j2",
        "postgresql/limit_statements.py.j2",
        "postgresql/money_statements.py.j2",
        "postgresql/schedule_statements.py.j2",
        "postgresql/statements.py.j2",
        "rq/knobs.py.j2",
        "sqlite/limit_statements.py.j2",
        "sqlite/money_statements.py.j2",
        "sqlite/schedule_statements.py.j2",
        "sqlite/statements.py.j2",
        "tests/requirements.txt.j2",
        "tests/spec_data.py.j2",
    }


# A printed expression ends in one of the filters, or is a function that makes Code.
PRINTED = re.compile(r"\{\{(.*?)\}\}", re.DOTALL)
SAFE = re.compile(
    r"\| (literal|name|comment|docstring|cell|code|yaml|length)$"
    r"|^(view|payload|deploy|flow)\.\w+\("
)
ROUGH = re.compile(
    r"\|\s*(safe|format|replace)\b|autoescape|\{%\s*raw|['\"]\{\{|\}\}['\"]"
)


@pytest.mark.parametrize(
    "path", sorted(TEMPLATES.rglob("*.j2")), ids=lambda p: str(p.relative_to(TEMPLATES))
)
def test_templates_print_through_filters_only(path):
    text = path.read_text("utf-8")
    if path.name.endswith("statements.py.j2") or path.parent.name == "migrations":
        return  # they are rendered with the two checked names and nothing else
    assert not ROUGH.search(text), ROUGH.search(text)
    for expression in PRINTED.findall(text):
        if expression.strip() != "line":  # the loops over view's own lines
            assert SAFE.search(expression.strip()), expression


def test_lists_inside_a_default_are_lists():
    table = Table((("a", (1, (2,))), ("b", Table((("c", ()),)))))
    field = samples.m.Field(
        "x", samples.m.Scalar("json"), samples.m.Default((table, "y"))
    )
    line = payload.body((field,)).strip()
    assert line == 'x: JsonValue = [{"a": [1, [2]], "b": {"c": []}}, "y"]'


# --- orders -----------------------------------------------------------------------


@given(st.lists(samples.WORDS, min_size=2, max_size=20, unique=True))
@settings(deadline=None, max_examples=20)
def test_imports_and_all_are_in_ruffs_order(names):
    modules = [
        f"from .{name} import A_{i}" for i, name in enumerate(sorting.natural(names))
    ]
    names = [*names, *(name.upper() for name in names), *(f"C{n}" for n in names)]
    public = ",\n    ".join(f'"{name}"' for name in sorting.public(set(names)))
    source = "\n".join([*modules, "", f"__all__ = [\n    {public},\n]\n"])
    done = subprocess.run(
        [*RUFF, "--select=I,RUF022", "--stdin-filename=__init__.py", "-"],
        input=source,
        capture_output=True,
        text=True,
    )
    assert done.stdout == ""


def test_a_short_line_is_left_alone():
    assert fit("a = f(1, 2)\nb = g([3])") == "a = f(1, 2)\nb = g([3])"


@pytest.mark.parametrize("dialect", ["sqlite", "postgresql"])
def test_the_sql_modules_are_black_exact(dialect):
    """Where ruff and black disagree (a long text inside a bracket), black counts."""
    record = samples.m.Record(dialect, "DATABASE_URL", "support_jobs")
    files = compiler.files_of(samples.model(record=record), "queue.toml")
    texts = [file.text for file in files if file.path.endswith("statements.py")]
    assert len(texts) == 4
    for text in texts:
        assert format.black(text) == text
