"""Files of ranking expressions: what is wrong in them, and where. What is right is in the golden script of the API."""

from __future__ import annotations

import pytest

from paperwasp.application.model_evaluation.models import read_model
from paperwasp.errors import LanguageError
from paperwasp.ranking.declarations import Declarations
from paperwasp.schema.files import PackageFiles

PATH = "models/m.model"


def read(text: str) -> dict[str, list[str]]:
    functions = read_model(PATH, text.encode(), Declarations(PackageFiles({PATH: text.encode()})))
    return {function.name: list(function.arguments) for function in functions}


def test_arguments_are_what_is_neither_function_nor_constant() -> None:
    text = """
    # a comment
    model m {
        function f(a) { expression: a + two + g + attribute(x) }
        constants { two: 2 }
        function g() { expression: h(b) }
        function h(x) { expression: x * 2 }
    }"""
    assert read(text) == {"f": ["a", "attribute(x)", "b"], "g": ["b"], "h": ["x"]}


def test_a_file_may_be_called_after_more_than_its_model() -> None:
    assert read("model m { function f() { expression: 1 } }") == {"f": []}
    with pytest.raises(LanguageError, match=r"model 'n' must be in a file named 'n\.model'"):
        read("model n { function f() { expression: 1 } }")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "expected 'model'"),
        ("models m { }", "expected 'model'"),
        ("model m {", "models/m.model, line 1, column 9: the '{' of model m is not closed"),
        ("model m { first-phase { expression: 1 } }", "a model has inputs, constants and functions, not first-phase"),
        ("model m { function f() { } }", "function f must have one expression"),
        (
            "model m { function f() { expression: 1\n } function f() { expression: 2\n } }",
            "function f is defined twice",
        ),
        ("model m { function f() { expression: g(1) + f\n } }", "calls itself"),
        ("model m { inputs { a tensor(x{} } }", "expected"),
        ("model m { inputs { a tensor(x[2]) }\n function f() { expression: a + b(\n } }", "line 2"),
        ("model m { constants { c tensor(x[2]): 3 } }", "cannot be a number"),
        ("model m { constants { c tensor(x[2]): [1, 2, 3] } }", "expected 2 value"),
        ("model m { constants { c tensor(x[2]): file: no.json } }", "there is no file 'models/no.json'"),
        ("model m { function f() { expression: constant(c)\n } }", "no constant 'c'"),
        ('model m { function f() { expression: xgboost("no.json")\n } }', "there is no file 'models/no.json'"),
        ("model m { function f() { expression: foreach(terms, N, term(N).weight, true, sum)\n } }", "foreach"),
        ("model m { inputs { a tensor(x[2]) b tensor(x[3]) }\n function f() { expression: a * b\n } }", "differs"),
    ],
)
def test_what_is_wrong(text: str, problem: str) -> None:
    with pytest.raises(LanguageError) as raised:
        read(text)
    assert problem in str(raised.value)


def test_a_file_that_is_no_text() -> None:
    with pytest.raises(LanguageError, match=r"models/m\.model: not UTF-8 at byte 6"):
        read_model(PATH, b"model \xff", Declarations(PackageFiles()))
