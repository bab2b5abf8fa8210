"""What an agent may spend is its owner's decision: the file, the raise, the approval."""

import json
import tomllib
from datetime import date

import pytest
from emit.projects import SPEC, Project

from qgen import approvals
from qgen.approvals import Entry, Limits, raised, read, text_of
from qgen.commands import approve, work
from qgen.compile import compile
from qgen.front import analyse

NAME = approvals.NAME
PAID = SPEC.replace(
    "[jobs.digest.payload]",
    """[agents.writer]
owner = "ann"
cap = { day = "25.00", job = "0.80" }
on_unknown = "hold"

[jobs.draft_reply]
agent = "writer"
max_cost = "0.20"
timeout = "20s"

[jobs.digest.payload]""",
)
DAY = date(2026, 1, 31)


def limits(each_by=None, on_unknown="hold", unit="USD", **amounts):
    named = {key.replace("each_", "cap_each."): each for key, each in amounts.items()}
    named = {k if "." in k else f"cap.{k}": each for k, each in named.items()}
    return Limits(named, each_by, on_unknown, unit)


# (what is approved, what the spec says, the keys that need an owner's word)
TABLE = [
    ("the same", limits(day=25), limits(day=25), []),
    ("lower", limits(day=25, job=8), limits(day=24, job=1), []),
    ("zero", limits(day=25), limits(day=0), []),
    ("one more cap", limits(day=25), limits(day=25, month=1000), []),
    ("no cap at all: denied", limits(day=25), limits(), []),
    ("higher", limits(day=25), limits(day=26), ["cap.day"]),
    ("a millionth", limits(day=25_000_000), limits(day=25_000_001), ["cap.day"]),
    ("a job's", limits(day=25, job=8), limits(day=25, job=9), ["cap.job"]),
    ("one lower, one higher", limits(day=2, job=8), limits(day=1, job=9), ["cap.job"]),
    ("two", limits(day=2, job=8), limits(day=3, job=9), ["cap.day", "cap.job"]),
    ("a cap left out", limits(day=25, month=99), limits(day=25), ["cap.month"]),
    ("another window", limits(day=25), limits(month=25), ["cap.day"]),
    ("from zero", limits(day=0), limits(day=1), ["cap.day"]),
    ("from none", limits(), limits(day=1), ["cap.day"]),
    ("from none to zero", limits(), limits(day=0), []),
    ("pay again", limits(day=1), limits(day=1, on_unknown="retry"), ["on_unknown"]),
    ("ask again", limits(day=1, on_unknown="retry"), limits(day=1), []),
    ("pay again, denied", limits(), limits(on_unknown="retry"), ["on_unknown"]),
    ("another unit", limits(day=1), limits(day=1, unit="BTC"), ["unit"]),
    ("another unit, denied", limits(day=1), limits(unit="BTC"), []),
    ("each value", limits("a", day=9, each_day=1), limits("a", day=9, each_day=1), []),
    ("each new", limits(day=9), limits("a", day=9, each_day=1), []),
    (
        "each higher",
        limits("a", day=9, each_day=1),
        limits("a", day=9, each_day=2),
        ["cap_each.day"],
    ),
    (
        "each left out",
        limits("a", day=9, each_day=1),
        limits(day=9),
        ["cap_each.day"],
    ),
    (
        "each of another field",
        limits("a", day=9, each_day=1),
        limits("b", day=9, each_day=1),
        ["cap_each.by"],
    ),
]


@pytest.mark.parametrize(
    ("was", "now", "keys"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE]
)
def test_what_needs_an_approval(was, now, keys):
    found = list(raised(now, was))
    assert [key for key, _ in found] == keys
    assert all(f"`{key}`" in what or "unit" in what for key, what in found)


# --- the file ---------------------------------------------------------------------

HOSTILE = 'a "b"\n[agents.writer]\ncap.day = "9"\x7f\u2028 日本'


def test_the_file_reads_well_and_is_read_back():
    entries = {
        "writer": Entry(limits("tenant_id", day=25_000_000, each_day=1), "ann", DAY),
        "reader": Entry(limits(unit="tokens"), "bob", DAY, HOSTILE),
    }
    text = text_of(entries)
    assert text.endswith("""
[agents.writer]
approved_by = "ann"
approved_on = 2026-01-31
cap.day = "25.00"
cap_each.by = "tenant_id"
cap_each.day = "0.000001"
on_unknown = "hold"
unit = "USD"
""")
    book = read(text.encode(), NAME)
    assert not isinstance(book, tuple)
    assert book.entries == entries
    assert text_of(book.entries) == text_of(dict(reversed(entries.items()))) == text


def test_agents_and_values_are_sorted_one_a_line():
    names = ["b", "a_2", "a", "c"]
    text = text_of({name: Entry(limits(month=1, day=2), "ann", DAY) for name in names})
    assert list(tomllib.loads(text)["agents"]) == sorted(names)
    for section in text.split("\n\n")[1:]:
        lines = section.strip().splitlines()[1:]
        assert lines == sorted(lines) and all(" = " in line for line in lines)


def entry(**changes):
    lines = {
        "approved_by": '"ann"',
        "approved_on": "2026-01-31",
        "cap.day": '"25.00"',
        "on_unknown": '"hold"',
        "unit": '"USD"',
    } | {key.replace("__", "."): each for key, each in changes.items()}
    kept = "".join(f"{key} = {each}\n" for key, each in lines.items() if each)
    return f"[agents.writer]\n{kept}"


@pytest.mark.parametrize(
    "text",
    [
        entry(cap__day="25.0"),
        entry(cap__day="true"),
        entry(cap__day='"-1"'),
        entry(cap__day='"nan"'),
        entry(cap__day='"1e9"'),
        entry(cap__day='"0.0000001"'),
        entry(cap__dya='"25"'),
        entry(cap='"25"', cap__day=""),
        entry(on_unknown='"always"'),
        entry(on_unknown=""),
        entry(unit=""),
        entry(approved_by=""),
        entry(approved_on='"2026-01-31"'),
        entry(approved_on="2026-01-31T10:00:00Z"),
        entry(tires="1"),
        "[agents]\nwriter = 1\n",
        "agents = 1\n",
        "[writer]\n",
        "<<<<<<< ours\n" + entry(),
        entry() + entry(),
        "[agents.writer\n",
        "\x00",
    ],
)
def test_what_is_not_understood_is_an_error_and_no_new_agent(text):
    """Else a damaged entry would be entered anew, at whatever the spec says."""
    found = read(text.encode(), NAME)
    assert isinstance(found, tuple) and found[0].is_error
    done = compile(PAID.encode(), "queue.toml", approved=text.encode())
    assert done.model is None and done.files == ()
    assert done.diagnostics == found


def test_a_hand_joined_file_need_not_be_sorted():
    text = entry(cap__job='"1"') + "\n[agents.a]\n" + entry().partition("\n")[2]
    book = read(text.replace("\n", "\r\n").encode(), NAME)
    assert not isinstance(book, tuple) and set(book.entries) == {"writer", "a"}


# --- the commands -----------------------------------------------------------------


@pytest.fixture
def project(tmp_path, monkeypatch):
    monkeypatch.setattr(work, "today", lambda: DAY)
    project = Project.at(tmp_path / "project", PAID)
    assert project.build() == 0
    return project


def approved(project, by="ann", note="", name="writer"):
    return approve.run(name, by, note, str(project.path("queue.toml")))


def test_a_build_enters_a_new_agent_and_then_says_nothing(project):
    text = project.read(NAME)
    assert 'approved_by = "qgen build"\napproved_on = 2026-01-31\n' in text
    before = project.tree()
    assert (project.check(), project.build()) == (0, 0)
    assert project.tree() == before
    assert NAME not in project.read("qgen.lock")


def test_a_spec_without_agents_has_no_approvals(tmp_path):
    project = Project.at(tmp_path / "project")
    assert project.build() == 0
    assert not project.path(NAME).exists()


def test_a_check_misses_an_agent_that_is_not_entered(project, capsys):
    project.path(NAME).unlink()
    assert project.check() == 1
    assert f"{NAME}: error[QG905]" in capsys.readouterr().err
    assert not project.path(NAME).exists()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('day = "25.00"', 'day = "25.01"'),
        ('day = "25.00", ', ""),
        ('"hold"', '"retry"'),
        ("[agents.writer]", '[spend]\nunit = "BTC"\n\n[agents.writer]'),
    ],
)
def test_a_raise_stops_build_and_check_until_its_owner_approves(
    project, capsys, old, new
):
    project.change("queue.toml", old, new)
    before = project.tree()
    for command in (project.build, project.check):
        capsys.readouterr()
        assert command() == 1
        said = capsys.readouterr()
        assert "error[QG914]" in said.err and "qgen approve writer --by" in said.err
        assert f"--- {NAME} (on disk)" in said.err
        assert said.out == ""
    assert project.build(force=True) == 1
    assert project.tree() == before
    assert approved(project, by="bob") == 1
    assert project.tree() == before
    assert approved(project, note="the spring fair") == 0
    text = project.read(NAME)
    assert 'approved_by = "ann"\n' in text and 'note = "the spring fair"\n' in text
    assert (project.build(), project.check()) == (0, 0)
    assert project.read(NAME) == text


@pytest.mark.parametrize("amount", ["24.99", "0"])
def test_less_needs_nothing_and_what_was_approved_stays_so(project, amount):
    text = project.read(NAME)
    project.change("queue.toml", 'day = "25.00"', f'day = "{amount}"')
    if amount == "0":
        project.change("queue.toml", ', job = "0.80"', ', job = "0.80", hour = "0"')
    assert (project.build(), project.check(), project.read(NAME)) == (0, 0, text)
    project.change("queue.toml", f'day = "{amount}"', 'day = "25.00"')
    assert project.build() == 0


def test_a_raise_is_shown_at_its_key_and_at_what_is_approved(project, capsys):
    project.change("queue.toml", '"25.00"', '"30"')
    project.build()
    spec = project.read("queue.toml").splitlines()
    line = next(n for n, each in enumerate(spec, 1) if each.startswith("cap ="))
    column = spec[line - 1].index('"30"') + 1
    kept = project.read(NAME).splitlines()
    entry = next(n for n, each in enumerate(kept, 1) if each.startswith("cap.day"))
    said = capsys.readouterr().err
    assert f"queue.toml:{line}:{column}: error[QG914]" in said
    assert f"also: {project.path(NAME)}:{entry}:5: what is approved" in said
    assert '-cap.day = "25.00"\n+cap.day = "30.00"\n' in said


def test_the_plan_is_shown_all_the_same(project):
    project.change("queue.toml", '"25.00"', '"30"')
    done = project.qgen("plan")
    assert done.returncode == 1 and "## WORKER PLAN" in done.stdout
    assert "QG914" in done.stderr


def test_json_and_the_fast_path_know_of_it(project):
    assert project.qgen("build").returncode == 0
    assert project.qgen("check").returncode == 0
    project.change(NAME, '"25.00"', '"20.00"')
    for command in ("build", "check"):
        done = project.qgen(command, "--format", "json")
        assert done.returncode == 1
        found = json.loads(done.stdout)["diagnostics"]
        assert [each["code"] for each in found] == ["QG914"]
    project.path(NAME).unlink()
    assert project.qgen("check").returncode == 1


@pytest.mark.parametrize("format", ["github", "sarif"])
def test_every_printer_knows_the_codes(project, format):
    project.change("queue.toml", '"25.00"', '"30"')
    assert "QG914" in project.qgen("check", "--format", format).stdout
    project.change(NAME, '"25.00"', '"x"')
    assert "QG913" in project.qgen("check", "--format", format).stdout


def test_two_agents_are_approved_one_by_one(project, capsys):
    project.change("queue.toml", '"25.00"', '"30"')
    project.write(
        "queue.toml",
        project.read("queue.toml") + '\n[agents.reader]\nowner = "bob"\n'
        'cap = { day = "1" }\n\n[jobs.read_mail]\nagent = "reader"\nmax_cost = "1"\n',
    )
    assert project.build() == 1
    assert approved(project, "ann", name="reader") == 1
    assert approved(project, "bob", name="reader") == 0
    assert approved(project) == 0
    assert project.build() == 0
    assert set(tomllib.loads(project.read(NAME))["agents"]) == {"reader", "writer"}
    capsys.readouterr()
    assert approved(project) == 0
    assert "nothing to approve" in capsys.readouterr().out


def test_an_owner_can_sign_what_a_build_has_entered(project, capsys):
    assert approved(project, by="bob") == 1
    assert approved(project, note="agreed") == 0
    text = project.read(NAME)
    assert 'approved_by = "ann"' in text and 'note = "agreed"' in text
    assert approved(project, note="again") == 0
    assert "nothing to approve" in capsys.readouterr().out
    assert project.read(NAME) == text
    assert project.check() == 0


def test_an_agent_that_is_gone_keeps_what_was_approved(project):
    """Else leaving it out for one build would be a way to raise its cap."""
    without = PAID.replace('agent = "writer"\nmax_cost = "0.20"\n', "")
    start, end = without.index("[agents.writer]"), without.index("[jobs.draft_reply]\n")
    project.write("queue.toml", without[:start] + without[end:])
    assert project.build() == 0
    project.write("queue.toml", PAID.replace('"25.00"', '"30"'))
    assert project.build() == 1


@pytest.mark.parametrize("target", ["elsewhere", "a folder"])
def test_what_is_in_the_way_is_not_written_through(project, tmp_path, target):
    project.path(NAME).unlink()
    if target == "elsewhere":
        outside = tmp_path / "outside.toml"
        outside.write_text("")
        project.path(NAME).symlink_to(outside)
    else:
        project.path(NAME).mkdir()
    assert project.build() == 1 == project.build(force=True)
    if target == "elsewhere":
        assert outside.read_text() == ""


def test_an_interrupted_build_is_completed(project):
    project.path(NAME).unlink()
    project.write(".qgen/unfinished", f"{NAME}\n")
    assert project.build() == 0
    assert NAME in project.tree()
    project.write(".qgen/unfinished", f"{NAME}\n")
    assert project.build() == 0
    assert NAME in project.tree()


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["writr", "--by", "ann"], 2),
        (["writer"], 2),
        (["writer", "--by", "bob"], 1),
        (["writer", "--by", "ann", "--spec", "none.toml"], 2),
        (["writer", "--by", "ann"], 0),
    ],
)
def test_exit_codes_of_approve(project, arguments, code):
    done = project.qgen("approve", *arguments)
    assert done.returncode == code, done
    assert "Traceback" not in done.stderr


def test_compile_asks_no_clock():
    """The date of an entry comes from the command."""
    model, _ = analyse(PAID.encode(), "queue.toml")
    assert model is not None
    made = approvals.entered(model, approvals.Book({}), DAY)
    assert made["writer"].on == DAY
