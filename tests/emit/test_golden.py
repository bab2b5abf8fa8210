"""What is kept in the repository is what the sources make."""

import pytest
from emit import golden

from qgen import format
from qgen.emit.plan import State


def test_every_engine_file_is_signed():
    """`python dev.py regen` writes the signatures after an edit of the engine."""
    names = [str(path.relative_to(golden.ROOT)) for path in golden.unsigned()]
    assert not names, "run python dev.py regen"


@pytest.mark.parametrize("case", golden.cases(), ids=lambda path: path.name)
def test_a_case_builds_what_it_expects(case):
    built = golden.built(case)
    assert set(built) == golden.on_disk(case), "run python dev.py regen"
    for path, text in built.items():
        assert path.read_bytes().decode() == text, path.relative_to(case)


@pytest.mark.parametrize("case", golden.cases(), ids=lambda path: path.name)
def test_black_agrees_with_every_golden_file(case):
    for path, text in golden.built(case).items():
        if path.suffix == ".py":
            assert format.black(text) == text


def test_the_example_is_what_its_spec_makes():
    if not golden.EXAMPLE.exists():
        pytest.skip("no example yet")
    from qgen.commands import work

    job = work.work(str(golden.EXAMPLE), None)
    states = {step.path: step.state for step in work.steps(job)}
    same = {State.SAME, State.OWNED}
    assert {p: s for p, s in states.items() if s not in same} == {}
