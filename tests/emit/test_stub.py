"""What a handler's stub shows of paying: code that its reader may take as it stands."""

import ast
from pathlib import Path

import pytest
import trees
from emit.samples import job, model

from qgen.handlers import handlers_files, stubs
from qgen.model import Agent

RUNNER = Path(__file__).parents[2] / "templates" / "package" / "runner.py"
PAID = {"agent": "writer", "max_cost": 200_000}


def texts(**values):
    """The stub as a build prints it, and the module as a build writes it."""
    made = model(job(**values), agents=(Agent("writer", "ann"),))
    (stub,), (file,) = stubs(made), handlers_files(made)
    return stub.text, file.text


def shown(text):
    """The statements of the handler with those that stand in comments."""
    tree = ast.parse(trees.uncommented(text))
    (handler,) = (node for node in tree.body if isinstance(node, ast.AsyncFunctionDef))
    return handler.body


def parameters(name):
    """What a method of JobContext takes."""
    (method,) = (
        node
        for node in ast.walk(ast.parse(RUNNER.read_text("utf-8")))
        if isinstance(node, ast.FunctionDef) and node.name == name
    )
    return method.args


@pytest.mark.parametrize("number", [0, 1])
def test_a_paid_job_shows_the_call(number):
    assign, last = shown(texts(**PAID)[number])
    assert isinstance(last, ast.Raise)
    assert isinstance(assign, ast.Assign) and isinstance(assign.value, ast.Await)
    call = assign.value.value
    assert isinstance(call, ast.Call) and ast.unparse(call.func) == "job.paid_call"
    takes = parameters("paid_call")
    assert len(call.args) == len(takes.args) - 1  # without self
    assert {each.arg for each in call.keywords} == {"max_cost", "cost", "keep"}
    assert {each.arg for each in call.keywords} <= {a.arg for a in takes.kwonlyargs}
    step, asked = call.args
    assert isinstance(step, ast.Constant) and isinstance(asked, ast.Lambda)
    most = next(each.value for each in call.keywords if each.arg == "max_cost")
    assert ast.unparse(most) == "'0.20'"


def test_a_job_that_pays_as_a_whole_shows_the_charge():
    charge, last = shown(texts(**PAID, billing="attempt")[0])
    assert isinstance(last, ast.Raise)
    assert isinstance(charge, ast.Expr) and ast.unparse(charge) == "job.charge('0.20')"
    assert len(parameters("charge").args) == 2


@pytest.mark.parametrize("number", [0, 1])
def test_a_job_that_is_not_paid_shows_neither(number):
    assert "paid_call" not in texts()[number] and "charge" not in texts()[number]


def test_the_plan_says_of_the_module_what_it_says_of_itself():
    (file,) = handlers_files(model(job()))
    assert file.why == (ast.get_docstring(ast.parse(file.text)) or "").split("\n\n")[0]
