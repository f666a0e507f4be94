"""The Model-evaluation API: its resources, paths and rules."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from cbor2 import loads

from tests import web
from tests.conformance.conftest import Served

TYPE = "tensor<float>(d0[1])"


def root_of(served: Served) -> str:
    return f"{served.url}/model-evaluation/v1"


def evaluate(served: Served, path: str, **form: str) -> httpx.Response:
    """POST a form to `eval` below a model or a function."""
    return web.post(f"{root_of(served)}/{path}/eval", data=form)


def function_info(served: Served, name: str) -> dict[str, Any]:
    url = f"{root_of(served)}/add_mul/{name}"
    arguments = [{"name": "input1", "type": TYPE}, {"name": "input2", "type": TYPE}]
    return {"function": name, "info": url, "eval": f"{url}/eval", "arguments": arguments}


def test_the_list_of_models(served: Served) -> None:
    for path in ("", "/"):
        answer = web.get(root_of(served) + path)
        names = ["add_mul", "layer", "light", "own_example", "trees", "words"]
        assert (answer.status_code, answer.json()) == (200, {name: f"{root_of(served)}/{name}" for name in names})


def test_the_info_of_a_model(served: Served) -> None:
    answer = web.get(f"{root_of(served)}/add_mul")
    functions = [function_info(served, name) for name in ("output1", "output_2")]
    assert (answer.status_code, answer.json()) == (200, {"model": "add_mul", "functions": functions})
    assert web.get(f"{root_of(served)}/none").status_code == 404


def test_the_info_of_a_function(served: Served) -> None:
    answer = web.get(f"{root_of(served)}/add_mul/output1")
    assert (answer.status_code, answer.json()) == (200, {"model": "add_mul", **function_info(served, "output1")})
    assert web.get(f"{root_of(served)}/add_mul/none").status_code == 404


def test_a_function_and_a_model_of_one_are_evaluated(served: Served) -> None:
    """output1 is the product, output_2 the sum; the model `layer` has one function, which needs no name."""
    for name, expected in (("output1", 6.0), ("output_2", 5.0)):
        answer = evaluate(served, f"add_mul/{name}", input1=f"{TYPE}:[2]", input2=f"{TYPE}:{{{{d0:0}}:3}}")
        assert answer.status_code == 200, answer.text
        assert answer.json()["cells"] == [{"address": {"d0": "0"}, "value": expected}]
        assert answer.json()["type"] == TYPE
    expected_cells = [{"address": {"d0": "0", "d1": str(n)}, "value": 9.0 + n} for n in range(3)]
    for path in ("layer", "layer/y"):
        answer = evaluate(served, path, x="tensor<float>(d0[1],d1[4]):[[0,0,0,1]]")
        assert answer.json()["cells"] == expected_cells
    assert evaluate(served, "add_mul", input1="[1]", input2="[1]").status_code == 404  # which of two functions?
    assert evaluate(served, "add_mul/output1", input1="[1]").status_code == 400  # an argument has no value


def test_what_is_no_tensor_is_a_string(served: Served) -> None:
    """The tree of categories takes text: its second split gives 0.25 for `a`, else 0.5; the first 1 up to 0.5."""
    for category, expected in (("a", 1.25), ("b", 1.5), ("something else", 1.5)):
        answer = evaluate(served, "light", numerical="0.1", categorical=category)
        assert (answer.status_code, answer.json()["cells"]) == (200, [{"address": {}, "value": expected}])


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        ("short", {"type": TYPE, "values": [6.0]}),
        ("SHORT", {"type": TYPE, "values": [6.0]}),
        ("long", {"type": TYPE, "cells": [{"address": {"d0": "0"}, "value": 6.0}]}),
        ("Long", {"type": TYPE, "cells": [{"address": {"d0": "0"}, "value": 6.0}]}),
        ("short-value", [6.0]),
        ("long-value", [{"address": {"d0": "0"}, "value": 6.0}]),
        ("LONG-Value", [{"address": {"d0": "0"}, "value": 6.0}]),
    ],
)
def test_forms_of_tensors(served: Served, form: str, expected: object) -> None:
    answer = evaluate(served, "add_mul/output1", input1="[2]", input2="[3]", **{"format.tensors": form})
    assert (answer.status_code, answer.json()) == (200, expected)


def test_the_form_string_and_one_that_there_is_not(served: Served) -> None:
    for form in ("string", "String"):
        answer = evaluate(served, "add_mul/output1", input1="[2]", input2="[3]", **{"format.tensors": form})
        assert (answer.status_code, answer.text) == (200, f"{TYPE}:[6.0]")
    answer = evaluate(served, "add_mul/output1", input1="[2]", input2="[3]", **{"format.tensors": "other"})
    assert (answer.status_code, list(answer.json())) == (400, ["error"])
    assert answer.json()["error"].lower().startswith("unknown tensor format")


def test_a_missing_value(served: Served) -> None:
    given = {"input1": "[2]", "format.tensors": "short-value"}
    answer = evaluate(served, "add_mul/output1", **given)
    assert answer.status_code == 400
    answer = evaluate(served, "add_mul/output1", **given, **{"missing-value": f"{TYPE}:[4]"})
    assert (answer.status_code, answer.json()) == (200, [8.0])


def test_get_and_cbor(served: Served) -> None:
    url = f"{root_of(served)}/add_mul/output1/eval"
    parameters = {"input1": "[2]", "input2": "[3]", "format.tensors": "short"}
    answer = web.get(url, params=parameters)
    assert (answer.status_code, answer.json()["values"]) == (200, [6.0])
    answer = web.get(url, params=parameters, headers={"Accept": "application/cbor"})
    assert (answer.headers["content-type"], loads(answer.content)) == (
        "application/cbor",
        {"type": TYPE, "values": [6.0]},
    )


def test_a_container_without_the_element(served: Served) -> None:
    assert web.get(f"{served.copies_url}/model-evaluation/v1/").status_code == 404
    assert web.get(f"{served.copies_url}/model-evaluation/v1/layer/eval").status_code == 404
