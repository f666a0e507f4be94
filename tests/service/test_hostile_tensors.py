"""Tensors of queries and documents that fit no type, are deep, long or enormous: a 400 that says what is expected, what
was given, and where; and the service goes on. Queries are told the type in any case, documents that of their field."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests import web
from tests.service.in_process import Deployed, active, deployed_service

SERVICES = """<services version="1.0">
  <container id="default" version="1.0"><search/><document-api/></container>
  <content id="c" version="1.0">
    <redundancy>1</redundancy>
    <documents><document type="t" mode="index"/></documents>
  </content>
</services>"""
SCHEMA = """schema t {
    document t {
        field dense type tensor<float>(x[3]) { indexing: attribute }
        field mapped type tensor(k{}) { indexing: attribute }
        field mixed type tensor<int8>(k{},x[2]) { indexing: attribute }
    }
    rank-profile p {
        inputs {
            query(dense) tensor<float>(x[3])
            query(mapped) tensor(k{})
            query(mixed) tensor<int8>(k{},x[2])
            query(number) double
        }
        first-phase {
            expression: sum(query(dense)) + sum(query(mapped)) + sum(query(mixed)) + query(number)
        }
    }
}
"""
TYPES = {"dense": "tensor<float>(x[3])", "mapped": "tensor(k{})", "mixed": "tensor<int8>(k{},x[2])", "number": "number"}
LONG = "a" * 1_000_000


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployed]:
    with deployed_service(tmp_path_factory.mktemp("hostile")) as service:
        active(service.deploy({"services.xml": SERVICES, "schemas/t.sd": SCHEMA}))
        assert put(service, "1", {}).status_code == 200
        yield service


def put(service: Deployed, name: str, fields: object) -> httpx.Response:
    content = fields if isinstance(fields, str) else json.dumps({"fields": fields})
    return web.post(f"{service.url}/document/v1/t/t/docid/{name}", content=content, timeout=30)


def asked(service: Deployed, **inputs: Any) -> tuple[int, dict[str, Any]]:
    said = {f"query({name})": value for name, value in inputs.items()}
    body = {"yql": "select * from t where true", "ranking": "p", "timeout": "20s", "input": said}
    answer = web.post(f"{service.url}/search/", json=body, timeout=30)
    return answer.status_code, answer.json()["root"]


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("dense", "[1,2]", "expected 3 value(s), found 2"),
        ("dense", [1, 2], "expected 3 value(s), found 2"),
        ("dense", 5, "expected 3 value(s), found 0"),
        ("dense", "{a:1}", "expected '[', found '{'"),
        ("dense", "tensor<float>(x[4]):[1,2,3,4]", "found a tensor<float>(x[4])"),
        ("dense", "tensor(y[3]):[1,2,3]", "found a tensor(y[3])"),
        ("dense", '{"type":"tensor(x[2])","values":[1,2]}', "found tensor(x[2])"),
        ("dense", "{{x:3}:1}", "index 3 is not in dimension x[3]"),
        ("dense", "{{x:99999999999999}:1}", "'99999999999999' is no index of dimension x[3]"),
        ("dense", "[" * 100_000, "expected a number, found '['"),
        ("dense", "[[1,2,3]]", "expected a number, found '['"),
        ("dense", "ffffff", "expected 3 value(s), found 0"),
        ("dense", "", "found the end"),
        ("mapped", "{a:b}", "expected a number, found 'b'"),
        ("mapped", {"a": {"b": 1}}, "expected a number, found '{'"),
        ("mapped", "[1,2]", "expected '{', found '['"),
        ("mapped", "{" * 100_000, "expected a label, found '{'"),
        ("mapped", f'{{"{LONG}', "expected a label"),
        ("mapped", '{"cells":' * 5_000, "expected a number, found '{'"),
        ("mapped", "{{y:a}:1}", "names each of its dimensions"),
        ("mapped", "tensor(k{},l{}):{{k:a,l:b}:1}", "found a tensor(k{},l{})"),
        ("mixed", "{a:[300,1]}", "a cell of int8 is from -128 to 127"),
        ("mixed", "{a:[1]}", "expected 2 value(s), found 1"),
        ("number", "{a:1}", "expected '{', found 'a'"),
        ("number", [1], "expected a number, found '['"),
        ("number", True, "expected a number, found 't'"),
        ("number", "tensor(x[2147483647]):[1]", "found a tensor(x[2147483647])"),
    ],
)
def test_inputs_that_do_not_fit(service: Deployed, name: str, text: Any, told: str) -> None:
    status, root = asked(service, **{name: text})
    message = root["errors"][0]["message"]
    assert (status, root["errors"][0]["code"]) == (400, 3)
    assert message.startswith(f"Could not set 'ranking.features.query({name})' to '") and told in message
    assert TYPES[name] in message or "expected a tensor()" in message
    assert len(message) < 400


@pytest.mark.parametrize(
    ("inputs", "relevance"),
    [
        ({"dense": "[1,2,nan]"}, "-Infinity"),  # what is no finite number is below all others, as in Vespa
        ({"dense": "[nan,inf,-inf]"}, "-Infinity"),
        ({"number": "1e999"}, "-Infinity"),
        ({"mapped": f"{{{LONG}:2}}"}, 2.0),
        ({"mapped": '{"\\u0000":3}'}, 3.0),
        ({"unknown": "tensor(x[2147483647],y[2147483647]):[1]"}, 0.0),  # what nobody declares is a text
        ({"unknown": f"tensor({'x' * 100_000}{{}}):{{a:1}}"}, 0.0),
    ],
)
def test_odd_inputs_that_fit(service: Deployed, inputs: dict[str, Any], relevance: object) -> None:
    status, root = asked(service, **inputs)
    assert status == 200
    assert root["children"][0]["relevance"] == relevance


@pytest.mark.parametrize(
    ("field", "value", "told"),
    [
        ("dense", {"values": [1, 2, 3, 4]}, "values: expected 3 value(s), found 4"),
        ("dense", {"cells": [{"address": {"x": "5"}, "value": 1}]}, "cells[0]: index 5 is not in dimension x[3]"),
        ("dense", "zz", "a string of values has hexadecimal digits only"),
        ("dense", 5, "expected an array, found a number"),
        ("dense", [True, 1, 2], "[0]: expected a number, found a boolean"),
        ("mapped", {"a": "b"}, "a: expected a number, found a string"),
        ("mapped", {"a": {"b": 1}}, "a: expected a number, found an object"),
        ("mapped", [1, 2], "is an object, not an array"),
        ("mixed", {"a": [300, 1]}, "a cell of int8 is from -128 to 127"),
        ("mixed", {"blocks": {"a": [1, 2, 3]}}, "blocks.a: expected 2 value(s), found 3"),
    ],
)
def test_fields_that_do_not_fit(service: Deployed, field: str, value: object, told: str) -> None:
    answer = put(service, "2", {field: value})
    message = answer.json()["message"]
    assert answer.status_code == 400, message
    assert message.startswith(f"In document 'id:t:t::2': Could not parse field '{field}' of type '{TYPES[field]}': ")
    assert told in message


@pytest.mark.parametrize(
    ("field", "value", "found"),
    [
        ("dense", [1, 2], [1, 2, 0]),
        ("dense", [[1, 2, 3]], [1, 2, 3]),
        ("dense", {"type": "tensor(x[2147483647])", "values": [1]}, [1, 0, 0]),
        ("mapped", {"type": "tensor(l{})", "cells": {"a": 1}}, {"a": 1}),
    ],
)
def test_odd_fields_that_fit(service: Deployed, field: str, value: object, found: object) -> None:
    """A type that is sent does not count, nor does nesting, and last values may be missing: TensorReader.java."""
    assert put(service, "2", {field: value}).status_code == 200
    fields = web.get(f"{service.url}/document/v1/t/t/docid/2").json()["fields"]
    assert fields[field]["values" if field == "dense" else "cells"] == found


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ('{"fields":{"mapped":' + '{"a":' * 100_000, "nested deeper than 1024 levels"),
        ('{"fields":{"dense":' + "[" * 100_000, "nested deeper than 1024 levels"),
        ('{"fields":{"mapped":' + '{"a":' * 900 + "1" + "}" * 902, "expected a number, found an object"),
        ('{"fields":{"dense":[NaN,1,2]}}', "expected a JSON value"),
    ],
    ids=["objects", "arrays", "deep", "nan"],
)
def test_deep_documents(service: Deployed, content: str, told: str) -> None:
    answer = put(service, "2", content)
    assert answer.status_code == 400
    assert told in answer.json()["message"]


def test_a_label_of_a_million_characters(service: Deployed) -> None:
    assert put(service, "3", {"mapped": {LONG: 1.5}}).status_code == 200
    found = web.get(f"{service.url}/document/v1/t/t/docid/3", timeout=30).json()
    assert found["fields"]["mapped"]["cells"] == {LONG: 1.5}
    assert web.delete(f"{service.url}/document/v1/t/t/docid/3", timeout=30).status_code == 200


@pytest.mark.parametrize(
    ("update", "told"),
    [
        ({"dense": {"modify": {"operation": "replace", "cells": {"9": 1}}}}, "index 9 is not in dimension x[3]"),
        ({"mapped": {"add": {"cells": {"a": "x"}}}}, "cells.a: expected a number, found a string"),
        ({"mapped": {"modify": {"operation": "divide", "cells": {"a": 1}}}}, "Unknown operation 'divide'"),
        ({"mapped": {"remove": {"addresses": [{"x": 1}]}}}, "Dimension 'x' is no mapped dimension of tensor(k{})"),
    ],
)
def test_updates_that_do_not_fit(service: Deployed, update: object, told: str) -> None:
    answer = web.put(f"{service.url}/document/v1/t/t/docid/1", json={"fields": update}, timeout=30)
    assert answer.status_code == 400
    assert told in answer.json()["message"]
