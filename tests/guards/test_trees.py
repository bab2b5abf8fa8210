"""The helper that exchanges the dialect of a spec; `dev.py check` builds the trees."""

import tomllib

import pytest
import trees


@pytest.mark.parametrize(
    "spec",
    [
        'x = 1\n[record]\ndialect = "sqlite"\ntable = "t"\n',
        '[record]\ntable = "t"\n[jobs.a]\n',
        "x = 1\n[jobs.a]\nn = 1\n",
    ],
    ids=["named", "not named", "no table"],
)
@pytest.mark.parametrize("dialect", trees.DIALECTS)
def test_the_dialect_is_exchanged_and_nothing_else(spec, dialect):
    before, after = tomllib.loads(spec), tomllib.loads(
        trees.with_dialect(spec, dialect)
    )
    before.setdefault("record", {})["dialect"] = dialect
    assert after == before


def test_every_tree_that_can_be_built_is_listed():
    assert set(trees.names()) <= {
        f"{target}-{dialect}" for target in trees.TARGETS for dialect in trees.DIALECTS
    }
