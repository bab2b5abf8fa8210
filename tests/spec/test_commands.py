"""explain, schema, targets."""

import json

import pytest

from qgen.cli import main
from qgen.spec.schema import schema


@pytest.fixture
def run(monkeypatch, capsys):
    def run(*args):
        monkeypatch.setattr("sys.argv", ["qgen", *args])
        code = main()
        return code, *capsys.readouterr()

    return run


def test_explain(run):
    code, out, err = run("explain", "qg401")
    assert (code, err) == (0, "")
    assert out.startswith("QG401 (error): stall.after too near")
    assert '    heartbeat = "15s"\n' in out


def test_explain_an_unknown_code(run):
    code, out, err = run("explain", "QG4O1")
    assert (code, out) == (2, "")
    assert err.startswith("qgen: there is no code QG4O1; did you mean QG4")
    assert run("explain", "nonsense")[2] == (
        "qgen: there is no code nonsense, such as QG401\n"
    )


def test_schema(run):
    code, out, _ = run("schema")
    assert code == 0 and json.loads(out) == schema()
    assert json.loads(run("schema", "diagnostics")[1])["$id"].endswith(
        "diagnostics.schema.json"
    )


def test_targets(run):
    code, out, _ = run("targets")
    assert code == 0 and "arq:" in out and "celery:" in out
    document = json.loads(run("targets", "--format", "json")[1])
    assert list(document["targets"]) == ["arq", "celery", "rq"]
    features = {}
    for name, target in document["targets"].items():
        features[name] = {each["feature"] for each in target["abilities"]}
        for ability in target["abilities"]:
            assert ability["how"] in ("native", "emulated", "refused")
            assert ability["note"] or ability["how"] != "refused"
    assert features["arq"] <= features["rq"] and features["arq"] <= features["celery"]
