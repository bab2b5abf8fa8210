"""The harness runs and counts right. Its figures are for `dev.py bench`, not for here."""

import statistics
import struct
import tomllib

import pytest
from cells import KINDS

from bench import __main__ as command
from bench import arq_durable, compile, generated, many, report, run, stage, ticks
from bench.systems import CELLS, SLOTS, SYSTEMS, find

SMALL = run.Size(reps=1, jobs=60, singles=20, waits=3)


@pytest.mark.parametrize(
    "name", [system.name for system in SYSTEMS if system.module != "bench.generated"]
)
def test_a_reference_system_runs_every_job_and_is_measured(name, monkeypatch):
    monkeypatch.setattr(run, "IDLE", 0.2)
    monkeypatch.setattr(run, "SETTLE", 1.0)
    system = find(name)
    figures = run.measure([system], SMALL)
    mine = figures[name]
    assert all(
        statistics.median(values) > 0 for values in vars(mine).values() if any(values)
    )
    assert mine.drain and mine.enqueue and mine.enqueue_many and mine.p50[0] < 1000
    text = run.render([system], SMALL, figures)
    for word in (system.settings, "synchronous FULL", "synchronous_commit on", "cores"):
        assert word in text


def test_a_hand_written_system_of_each_backend_and_dialect_drains():
    names = ("rq-fork hand-written sqlite3", "celery-threads hand-written psycopg")
    with stage.open_stage() as opened:
        for system in map(find, names):
            figures = run.Figures()
            run.drain(opened, system, run.Size(reps=1, jobs=30), figures)
            assert figures.drain[0] > 0


def test_ratios_are_taken_to_the_named_system_of_the_same_run():
    figures = {s.name: run.Figures() for s in SYSTEMS}
    for number, system in enumerate(SYSTEMS, 1):
        for values in vars(figures[system.name]).values():
            values.append(100.0 * number)
    lines = run.render(SYSTEMS, SMALL, figures).splitlines()
    (generated,) = (x for x in lines if x.startswith("| generated postgresql | 500 "))
    drains = generated.split(" | ")[3:]
    assert sum("MISSED" in line for line in lines) == 2  # idle p50, 2.5 and 1.5 times
    # Number 5 of the list against hand-written asyncpg, 2, and bare, 1.
    assert drains == ["500", "2.50", "5.00 |"]


@pytest.mark.parametrize("kind", [kind for kind in CELLS if kind != "arq"])
def test_a_cell_is_compared_with_its_own_backend_and_record(kind):
    cell = CELLS[kind]
    assert cell[0].name == cell[-1].bare and cell[0].dialect is None
    # Bare, hand-written on PostgreSQL and SQLite, generated on both.
    drains = dict(zip(cell, (100.0, 100.0, 50.0, 129.0, 79.0), strict=True))
    figures = {s.name: run.Figures(*([drains[s]] for _ in range(7))) for s in cell}
    lines = [x for x in run.verdicts(cell, figures) if "drain" in x]
    assert [line.rpartition(": ")[2] for line in lines] == [
        "MISSED",  # 1.29 of hand-written psycopg
        "kept",
        "kept",  # 1.58 of hand-written sqlite3
        "MISSED",  # 0.79 of bare
    ]


def test_cells_are_those_of_the_suite():
    assert set(CELLS) == set(KINDS) == set(SLOTS) == set(run.JOBS)
    assert command.cells("all", None) == list(CELLS)
    assert command.cells("rq", None) == ["rq-fork", "rq-simple"]
    assert command.cells("celery", "threads") == ["celery-threads"]
    assert command.cells("arq", None) == ["arq"]
    for words in (["--mode", "threads"], ["--paid"]):
        with pytest.raises(SystemExit):
            command.parse(["run", "--target", "rq", *words])


def test_each_cell_is_built_for_its_backend(tmp_path):
    for kind in CELLS:
        built = KINDS[kind].spec(generated.spec(kind))
        spec = tomllib.loads(built)
        assert spec["workers"]["main"]["concurrency"] == SLOTS[kind]
    folder = generated.build("postgresql", tmp_path, built, KINDS[kind].target)
    assert 'TARGET: Final = "' + KINDS[kind].target in (
        folder / generated.PACKAGE / "broker.py"
    ).read_text("utf-8")


def test_every_cell_has_a_section_of_its_own(monkeypatch, capsys):
    written = []
    monkeypatch.setattr(run, "main", lambda systems, size: f"{systems[0].name} {size}")
    monkeypatch.setattr(report, "write", lambda *words: written.append(words[:2]))
    assert command.main(["run", "--target", "all", "--jobs", "7", "--write"]) == 0
    assert dict(written)["run-rq-fork"] == "Throughput and latency: rq, fork"
    assert [section for section, _ in written][:2] == ["run", "run-rq-fork"]
    assert len(dict(written)) == len(CELLS)
    assert "celery-threads bare Size(reps=2, jobs=7" in capsys.readouterr().out


def test_a_bound_is_kept_or_missed():
    assert report.verdict("x", 1.5, least=1.5).endswith("at least 1.5: kept")
    assert report.verdict("x", 1.49, least=1.5).endswith("MISSED")
    assert report.verdict("x", 1.2, most=1.2).endswith("at most 1.2: kept")
    assert report.verdict("x", 1.21, most=1.2).endswith("MISSED")


def test_a_system_whose_reference_did_not_run_has_no_ratio():
    system = find("generated sqlite")
    figures = run.Figures(*([1.0] for _ in range(7)))
    line = run.render([system], SMALL, {system.name: figures})
    assert "| generated sqlite | 1 | 1 | 1 |  |  |" in line


def test_ticks_are_read_in_order_and_a_torn_one_is_left_out(tmp_path):
    path = tmp_path / "ticks"
    assert ticks.count(path) == 0
    path.write_bytes(struct.pack("2d", 2.0, 1.0) + b"torn")
    assert ticks.count(path) == 2
    assert ticks.read(path) == [1.0, 2.0]


def test_placeholders_are_numbered_for_asyncpg():
    assert arq_durable.numbered("a = ? AND b = ?") == "a = $1 AND b = $2"


def test_a_section_of_the_document_is_replaced_and_the_others_stay(tmp_path):
    document = tmp_path / "docs" / "benchmarks.md"
    report.write("run", "Run", r"first \1", document)
    report.write("memory", "Memory", "kept", document)
    report.write("run", "Run", "second", document)
    text = document.read_text()
    assert text.startswith("# Benchmarks")
    assert "first" not in text
    assert text.index("second") < text.index("kept")
    assert text.count("## Run") == text.count("## Memory") == 1


def test_spread_and_percentile():
    assert report.spread([3.0, 1.0, 2.0], 1) == "2.0 (1.0-3.0)"
    assert report.spread([1234.4]) == "1,234"
    assert report.percentile(range(100), 0.9) == 90
    assert report.percentile([5.0], 0.9) == 5.0


def test_systems_are_chosen_by_words_of_their_names():
    assert [s.name for s in command.chosen("bare,generated sq")] == [
        "arq bare",
        "generated sqlite",
    ]
    assert len(command.chosen(None)) == len(SYSTEMS)


# --- bench compile ---


@pytest.mark.long
def test_the_compilers_table_is_measured_whole(monkeypatch):
    monkeypatch.setattr(compile, "JOBS", 4)
    monkeypatch.setattr(compile, "SIZES", (1, 2, 3, 5))
    text = compile.main(1)
    for case in (compile.COLD, compile.EDIT, compile.TREE, compile.PEER, "| 5 |"):
        assert case in text
    assert text.count("must be") == 12
    # What depends neither on the number of jobs nor on the machine. (A process counts the
    # memory of the one that started it, which here is this suite.)
    for line in text.splitlines():
        if line.startswith(("- `qgen --version`", "- files", "- handlers")):
            assert line.endswith("kept"), line


def test_a_measured_command_that_fails_is_not_a_figure(tmp_path):
    with pytest.raises(compile.Failed, match=r"nothing\.toml does not exist"):
        compile.run([*compile.QGEN, "build", "nothing.toml"], tmp_path)


def test_the_cost_of_a_job_is_compared_between_sizes():
    rows = [(10, 1.0, 0.0), (100, 1.9, 0.0), (1000, 10.9, 0.0), (5000, 50.9, 0.0)]
    assert compile.slope(rows) == pytest.approx(1.0)
    assert compile.slope([*rows[:3], (5000, 90.9, 0.0)]) == pytest.approx(2.0)


def test_an_edited_spec_differs_in_one_job():
    before, after = many.spec(9).splitlines(), many.edited(9).splitlines()
    (place,) = (
        n for n, pair in enumerate(zip(before, after, strict=True)) if len({*pair}) > 1
    )
    assert after[place] == 'timeout = "6m"'
    assert after[place - 2] == "[jobs.job_0004]"
