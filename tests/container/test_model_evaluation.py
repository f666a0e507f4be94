"""The Model-evaluation API by a golden script, and what a script cannot say: batches, overload, threads.

Cases are parted by blank lines: a request line (`GET <path>` or `POST <path>`, then the form), a line `---`, the status
and the body. PAPERWASP_REWRITE_SCRIPTS=1 writes what the code says into the script instead of comparing.
"""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from urllib.parse import urlencode

import cbor2
import numpy as np
import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paperwasp import limits
from paperwasp.application.model_evaluation.models import Models, read_models
from paperwasp.container.model_evaluation import (
    EvaluationHandler,
    EvaluationRuns,
    is_model_evaluation,
    long_text,
    outcomes_of,
    short_text,
)
from paperwasp.document.tensor.literal import parse_tensor
from paperwasp.errors import InvalidInput, Overload, PaperwaspError, Timeout
from paperwasp.http.messages import Request, Response
from paperwasp.ranking.onnx.session import Arrays
from tests.application.model_evaluation.packages import files
from tests.ranking.onnx.onnx_models import repeated

SCRIPT = Path(__file__).parent / "scripts" / "model_evaluation.txt"
FORM = {"content-type": "application/x-www-form-urlencoded"}


@pytest.fixture(scope="module")
def models() -> Models:
    return read_models(files(), {})


def ask(handler: EvaluationHandler, asked: str) -> Response:
    line, _, body = asked.partition("\n")
    method, _, address = line.partition(" ")
    path, _, query = address.partition("?")
    form = body.replace("\n", "&").encode()
    return asyncio.run(handler.handle(Request(method, path, query, FORM if form else {}, form, host="h:8080")))


def test_script(models: Models) -> None:
    handler = EvaluationHandler()
    handler.configure(models)
    head, *cases = SCRIPT.read_text().strip().split("\n\n")
    found = [head]
    for case in cases:
        asked = case.partition("\n---\n")[0]
        answer = ask(handler, "\n".join(line for line in asked.splitlines() if not line.startswith("#")))
        assert answer.content_type == "application/json"
        found.append(f"{asked}\n---\n{answer.status}\n{answer.body.decode()}")
    if os.environ.get("PAPERWASP_REWRITE_SCRIPTS"):
        SCRIPT.write_text("\n\n".join(found) + "\n")
    assert found == [head, *cases]


@pytest.mark.parametrize(
    ("path", "is_one"),
    [
        ("/model-evaluation/v1", True),
        ("/model-evaluation/v1/", True),
        ("/model-evaluation/v1/m", True),
        ("/model-evaluation/v10", False),
        ("/model-evaluation/v0/", False),
        ("/model-evaluation/", False),
    ],
)
def test_paths(path: str, is_one: bool) -> None:
    assert is_model_evaluation(path) is is_one


def test_requests_that_wait_are_one_run(models: Models, monkeypatch: pytest.MonkeyPatch) -> None:
    """A row for each that fits; the others alone. y of x is x · W, W counting from 0 in rows of three."""
    function = models.model("layer").function(())
    texts = [{"x": f"[[{n}, 0, 0, 1]]", "format.tensors": "short-value"} for n in range(5)]
    wrong = [{"x": "[[1, 2]]"}, {}]
    two_rows = [{"x": "[[1, 0, 0, 0], [0, 1, 0, 0]]", "format.tensors": "short-value"}]
    [_] = outcomes_of(function, texts[:1])
    sizes: list[int] = []
    session = function._session  # type: ignore[attr-defined]
    run = session.run

    def counted(fed: Arrays) -> Arrays:
        sizes.append(len(fed["x"]))
        found: Arrays = run(fed)
        return found

    monkeypatch.setattr(session, "run", counted)
    session.takes_batches({"x": (1, 4)})
    sizes.clear()
    outcomes = outcomes_of(function, [*texts, *wrong, *two_rows])
    assert sizes == [5, 2]
    values = [orjson.loads(each) for each in outcomes if isinstance(each, bytes)]
    assert values == [[[9, n + 10, 2 * n + 11]] for n in range(5)] + [[[0, 1, 2], [3, 4, 5]]]
    assert [str(each) for each in outcomes if isinstance(each, PaperwaspError)] == [
        "'x' must be of type tensor<float>(d0[],d1[4]), not tensor()",
        "Argument 'x' must be bound to a value of type tensor<float>(d0[],d1[4])",
    ]


def test_a_row_that_fails_concerns_no_other(models: Models) -> None:
    """There are ten words: 10 is none. Row n of the table is n and n squared."""
    function = models.model("words").function(())
    texts = [{"ids": f"[[{word}]]", "format.tensors": "short-value"} for word in (3, 10, 4)]
    good, failed, other = outcomes_of(function, texts)
    assert (good, other) == (b"[[3.0,9.0]]", b"[[4.0,16.0]]")
    assert isinstance(failed, InvalidInput)
    assert "The model failed for these values" in str(failed)


def test_many_requests_at_once(models: Models) -> None:
    async def all_of() -> list[bytes]:
        runs = EvaluationRuns(3)
        functions = [models.model("layer").function(()), models.model("trees").function(())]
        texts = [{"x": f"[[{n}, 0, 0, 1]]", "f1": str(n % 2), "format.tensors": "short-value"} for n in range(200)]
        return await asyncio.gather(*(runs.evaluate(functions[n % 3 == 0], given) for n, given in enumerate(texts)))

    for n, body in enumerate(asyncio.run(all_of())):
        network = [[9, n + 10, 2 * n + 11]]
        assert orjson.loads(body) == ([21.5 + n % 2] if n % 3 == 0 else network)


def test_too_many_wait(models: Models) -> None:
    async def refused() -> None:
        runs = EvaluationRuns(1, waiting=0)
        await runs.evaluate(models.model("trees").function(()), {})

    with pytest.raises(Overload, match="overload"):
        asyncio.run(refused())


def test_an_evaluation_ends_when_its_time_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """The loop has as many turns as the numbers are together."""
    monkeypatch.setattr(limits, "MODEL_EVALUATION_SECONDS", 0)
    function = read_models({"models/loop.onnx": repeated()}, {}).model("loop").function(())

    async def evaluated() -> None:
        await EvaluationRuns(1).evaluate(function, {"x": "[[1e9, 0, 0, 0]]"})

    with pytest.raises(Timeout, match="more than 0 s"):
        asyncio.run(evaluated())


@pytest.mark.parametrize(
    ("text", "short", "long"),
    [
        ("tensor(x[2]):[1, 2]", "tensor(x[2]):[1.0, 2.0]", "tensor(x[2]):{{x:0}:1.0, {x:1}:2.0}"),
        ("tensor(x{}):{b:2, a:1}", "tensor(x{}):{a:1.0, b:2.0}", "tensor(x{}):{{x:a}:1.0, {x:b}:2.0}"),
        ("tensor(x{}):{}", "tensor(x{}):{}", "tensor(x{}):{}"),
        (
            "tensor<int8>(x{},y[2]):{a:[1, 2]}",
            "tensor<int8>(x{},y[2]):{a:[1.0, 2.0]}",
            "tensor<int8>(x{},y[2]):{{x:a,y:0}:1.0, {x:a,y:1}:2.0}",
        ),
        (
            "tensor<float>(a{},b{}):{{a:p,b:q}:0.1}",
            "tensor<float>(a{},b{}):{{a:p,b:q}:0.1}",
            "tensor<float>(a{},b{}):{{a:p,b:q}:0.1}",
        ),
        ("tensor(x[2],y[1]):[[1], [inf]]", "tensor(x[2],y[1]):[[1.0], [Infinity]]", ""),
    ],
)
def test_texts(text: str, short: str, long: str) -> None:
    tensor = parse_tensor(text)
    assert short_text(tensor) == short
    assert long_text(tensor) == (long or "tensor(x[2],y[1]):{{x:0,y:0}:1.0, {x:1,y:0}:Infinity}")
    if np.isfinite(tensor.cells).all():
        assert parse_tensor(short) == tensor


def test_cbor_for_who_prefers_it(models: Models) -> None:
    async def answered(path: str, query: str = "") -> Response:
        return await handler.handle(Request("GET", path, query, {"accept": "application/cbor"}))

    handler = EvaluationHandler()
    handler.configure(models)
    root = "/model-evaluation/v1"
    assert "trees" in cbor2.loads(asyncio.run(answered(root)).body)
    assert cbor2.loads(asyncio.run(answered(f"{root}/no")).body)["error"].startswith("No model named 'no'")
    assert cbor2.loads(asyncio.run(answered(f"{root}/trees/eval")).body)["values"] == [21.5]
    literal = asyncio.run(answered(f"{root}/trees/eval", "format.tensors=String"))
    assert (literal.body, literal.content_type) == (b"tensor():{21.5}", "application/json")


SEGMENTS = st.sampled_from(["add_mul", "layer", "trees", "own_example", "output1", "y", "eval", "", "%2f", "é"])
EVALUATED = ["add_mul/output1", "layer", "words", "trees", "light", "own_example/scaled", "own_example/calling"]
PATHS = st.one_of(st.sampled_from([f"{each}/eval" for each in EVALUATED]), st.lists(SEGMENTS, max_size=5).map("/".join))
NAMES = st.sampled_from(["x", "ids", "input1", "input2", "f1", "a", "c", "query(d)", "missing-value", "format.tensors"])
TEXTS = st.one_of(
    st.text(alphabet='[]{}:,01.-eax"tensor()<float> d', max_size=30),
    st.sampled_from(
        ["[1]", "[[1,2,3,4]]", "{a:[1,2,3]}", "1e999", "nan", "short", "string", "hex", "{}", "[]", "null"]
    ),
    st.sampled_from(
        ["tensor(d0[1]):[1]", "tensor(d0[4294967296]):[1]", "[[]]", "null", '{"values":[1]}', '{"cells":{"a":1}}']
    ),
)


@settings(max_examples=300, deadline=None)
@given(PATHS, st.dictionaries(NAMES, TEXTS), st.booleans())
def test_any_request_is_answered(models: Models, path: str, texts: dict[str, str], is_form: bool) -> None:
    handler = EvaluationHandler()
    handler.configure(models)
    encoded = urlencode(texts)
    whole_path = f"/model-evaluation/v1/{path}"
    asked = Request("POST", whole_path, "" if is_form else encoded, FORM, encoded.encode())
    answer = asyncio.run(handler.handle(asked))
    assert answer.status in (200, 400, 404)
    if answer.status != 200:
        assert list(orjson.loads(answer.body)) == ["error"]


@pytest.mark.parametrize(("memory_bytes", "status"), [(limits.QUERY_MEMORY_BYTES, 200), (1000, 400)])
def test_an_evaluation_that_takes_too_much_memory_is_an_error_of_the_request(memory_bytes: int, status: int) -> None:
    """Not 413: what was sent is small."""
    function = b"function f() { expression: sum(tensor(a[100],b[100])(a * x + b)) }"
    text = b"model big {\n inputs {\n x tensor()\n }\n %b\n}" % function
    handler = EvaluationHandler()
    handler.configure(read_models({"models/big.model": text}, {}), memory_bytes)
    answer = ask(handler, "GET /model-evaluation/v1/big/f/eval?x=2")
    assert answer.status == status, answer.body
    if status == 400:
        assert b"more than the 1,000 bytes of memory" in answer.body
