"""Values that a language model makes of texts: what it is asked, and what becomes of its answers."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from typing import Any

import orjson
import pytest

from paperwasp.components.generation import check_components, generators_of
from paperwasp.document.tensor.types import TensorType
from paperwasp.document.types import (
    BOOL,
    BYTE,
    DOUBLE,
    FLOAT,
    FLOAT16,
    INT,
    LONG,
    POSITION,
    PREDICATE,
    RAW,
    STRING,
    DataType,
    array_of,
    map_of,
    reference_to,
    struct_of,
    tensor_field,
    weighted_set_of,
)
from paperwasp.errors import InvalidInput, Overload, Unavailable
from paperwasp.indexing.components import Context, Generator
from paperwasp.schema.files import Component, PackageFiles
from tests.components.stand_in import Asked, Reply, StandIn, stand_in

CLASS = "ai.vespa.llm.generation.LanguageModelFieldGenerator"
FIELD = Context("passage.questions")
PERSON = struct_of("person", {"name": STRING, "age": INT})


def config(**settings: str) -> Mapping[str, str]:
    return {"config@name": "any", **{f"config/{name}": text for name, text in settings.items()}}


def model(url: str, id: str = "openai", **settings: str) -> Component:
    return Component(
        "component", id, class_name="ai.vespa.llm.clients.OpenAI", settings=config(endpoint=url, **settings)
    )


def generator(url: str, files: Mapping[str, bytes] | None = None, **settings: str) -> Generator:
    """One whose settings are right."""
    components = [model(url), Component("component", "made", class_name=CLASS, settings=config(**settings))]
    assert list(check_components(components, PackageFiles(files))) == []
    return generators_of(components, PackageFiles(files))["made"]


def said(content: object) -> dict[str, Any]:
    """What a chat answers."""
    return {"choices": [{"index": 0, "message": {"role": "assistant", "content": content}, "finish_reason": "stop"}]}


@pytest.fixture
def chat() -> Iterator[StandIn]:
    """A model that says the prompt again, as a value where one is wanted."""

    def answer(asked: Asked) -> object:
        text = asked.body["messages"][0]["content"]
        form = asked.body.get("response_format")
        if form is None:
            return said(text)
        (name,) = form["json_schema"]["schema"]["properties"]
        return said(orjson.dumps({name: text}).decode())

    with stand_in(answer) as server:
        yield server


def test_what_a_model_is_asked(chat: StandIn) -> None:
    made = generator(f"{chat.url}/v1/", promptTemplate="Ask about {input}!").generate("cats", STRING, FIELD)
    assert made == "Ask about cats!"
    schema = {
        "type": "object",
        "properties": {"passage.questions": {"type": "string"}},
        "required": ["passage.questions"],
        "additionalProperties": False,
    }
    assert [each.path for each in chat.asked] == ["/v1/chat/completions"]
    assert chat.bodies == [
        {
            "model": "gpt-4o-mini",
            "messages": [{"role": "user", "content": "Ask about cats!"}],
            "response_format": {
                "type": "json_schema",
                "json_schema": {"name": "structured-output", "schema": schema},
            },
        }
    ]
    assert "authorization" not in chat.asked[0].headers


@pytest.mark.parametrize("key", ["apiKeySecretRef", "apiKeySecretName"])
def test_settings_of_a_client(chat: StandIn, key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PAPERWASP_SECRET_OPENAI_KEY", "sk-1")
    settings = {
        "model": "m",
        "temperature": "0",
        "maxTokens": "7",
        "reasoningEffort": "low",
        "jsonSchemaStrict": "true",
    }
    components = [
        model(f"{chat.url}/v1/chat/completions", **{key: "openai-key"}, **settings),
        Component("component", "made", class_name=CLASS, settings=config(providerId="openai")),
    ]
    assert list(check_components(components, {})) == []
    generators_of(components, {})["made"].generate("x", STRING, FIELD)
    (asked,) = chat.asked
    assert (asked.path, asked.headers["authorization"]) == ("/v1/chat/completions", "Bearer sk-1")
    assert asked.body["response_format"]["json_schema"]["strict"] is True
    settings_sent = {name: asked.body[name] for name in asked.body if name not in ("messages", "response_format")}
    assert settings_sent == {"model": "m", "temperature": 0.0, "max_completion_tokens": 7, "reasoning_effort": "low"}


def test_without_a_template_the_text_is_the_prompt(chat: StandIn) -> None:
    assert generator(chat.url).generate("What of {input}?", STRING, FIELD) == "What of {input}?"


def test_a_template_in_a_file_with_the_schema(chat: StandIn) -> None:
    files = {"files/ask.txt": "Füll {jsonSchema} mit {input}.".encode()}
    made = generator(chat.url, files, promptTemplateFile="files/ask.txt").generate("{jsonSchema}", INT, FIELD)
    assert made is None  # it is a text, where a number was wanted
    prompt = chat.bodies[0]["messages"][0]["content"]
    begin, schema, end = prompt[:5], prompt[5:-18], prompt[-18:]
    assert (begin, end) == ("Füll ", " mit {jsonSchema}.")
    assert orjson.loads(schema) == chat.bodies[0]["response_format"]["json_schema"]["schema"]


def test_the_template_goes_before_the_file(chat: StandIn) -> None:
    settings = {"promptTemplate": "here: {input}", "promptTemplateFile": "ask.txt"}
    assert generator(chat.url, {"ask.txt": b"there"}, **settings).generate("x", STRING, FIELD) == "here: x"


def test_text(chat: StandIn) -> None:
    made = generator(chat.url, responseFormatType="TEXT", promptTemplate="{input}{input}").generate("ab", STRING, FIELD)
    assert made == "abab"
    assert chat.bodies == [{"model": "gpt-4o-mini", "messages": [{"role": "user", "content": "abab"}]}]


@pytest.mark.parametrize(
    ("type_", "schema", "value", "made"),
    [
        (BOOL, {"type": "boolean"}, True, True),
        (STRING, {"type": "string"}, "a", "a"),
        (BYTE, {"type": "integer"}, -3, -3),
        (INT, {"type": "integer"}, 7, 7),
        (LONG, {"type": "integer"}, 2**40, 2**40),
        (FLOAT16, {"type": "number"}, 0.5, 0.5),
        (FLOAT, {"type": "number"}, 0.5, 0.5),
        (DOUBLE, {"type": "number"}, 0.1, 0.1),
        (array_of(STRING), {"type": "array", "items": {"type": "string"}}, ["a", "b"], ["a", "b"]),
        (array_of(INT), {"type": "array", "items": {"type": "integer"}}, [1, 2], [1, 2]),
        (weighted_set_of(STRING), {"type": "object", "additionalProperties": {"type": "integer"}}, {"a": 2}, {"a": 2}),
        (map_of(STRING, DOUBLE), {"type": "object", "additionalProperties": {"type": "number"}}, {"a": 2}, {"a": 2.0}),
        (
            PERSON,
            {
                "type": "object",
                "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
                "required": ["name", "age"],
                "additionalProperties": False,
            },
            {"name": "Ada", "age": 36},
            {"name": "Ada", "age": 36},
        ),
        (STRING, {"type": "string"}, None, None),
    ],
    ids=str,
)
def test_values_of_each_type(type_: DataType, schema: object, value: object, made: object) -> None:
    with stand_in(lambda _: said(orjson.dumps({"passage.questions": value}).decode())) as server:
        each = generator(server.url)
        each.check(type_)
        assert each.generate("x", type_, FIELD) == made
        (body,) = server.bodies
    assert body["response_format"]["json_schema"]["schema"]["properties"] == {"passage.questions": schema}


@pytest.mark.parametrize(
    "type_", [RAW, POSITION, PREDICATE, reference_to("a"), tensor_field(TensorType.parse("tensor(x[1])"))]
)
def test_types_of_which_none_are_made(type_: DataType) -> None:
    each = generator("http://127.0.0.1:1")
    for wanted in (type_, array_of(type_)):
        with pytest.raises(
            ValueError, match=r"a field of type .* cannot be generated: there is no JSON schema for values"
        ):
            each.check(wanted)


def test_a_text_for_a_field_of_another_type() -> None:
    with pytest.raises(ValueError, match="TEXT makes a string, but type int is needed"):
        generator("http://127.0.0.1:1", responseFormatType="TEXT").check(INT)


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ("no JSON", "invalid literal"),
        ('"text"', 'document is missing the required "fields" field'),
        ('{"passage.questions": "one"}', "Could not parse field 'passage.questions' of type 'int'"),
        ('{"passage.questions": 3000000000}', "Could not parse field 'passage.questions' of type 'int'"),
        ('{"other": 1}', "Field 'other' is not defined"),
        ('{"passage.questions": 1', "unexpected"),
    ],
)
def test_an_answer_of_another_form(answer: str, reason: str, caplog: pytest.LogCaptureFixture) -> None:
    problem = f"Failed to parse JSON value for field passage.questions of type int: {answer}: "
    with stand_in(lambda _: said(answer)) as server, caplog.at_level(logging.WARNING, "paperwasp.generators"):
        assert generator(server.url).generate("x", INT, FIELD) is None
        assert generator(server.url, invalidResponseFormatPolicy="DISCARD").generate("x", INT, FIELD) is None
        assert caplog.messages == []
        assert generator(server.url, invalidResponseFormatPolicy="WARN").generate("x", INT, FIELD) is None
        (told,) = caplog.messages
        assert told.startswith(f"passage.questions: {problem}") and reason in told
        with pytest.raises(ValueError) as raised:
            generator(server.url, invalidResponseFormatPolicy="FAIL").generate("x", INT, FIELD)
    assert str(raised.value).startswith(problem) and reason in str(raised.value)


@pytest.mark.parametrize("answer", [[], {}, {"choices": []}, said(None), said(7), {"choices": [{"text": "old"}]}])
def test_an_answer_without_a_text(answer: object) -> None:
    with (
        stand_in(lambda _: answer) as server,
        pytest.raises(Unavailable, match=r"component 'openai': .*without a text"),
    ):
        generator(server.url).generate("x", STRING, FIELD)


def test_a_model_that_is_overloaded() -> None:
    reply = Reply({"error": {"message": "slow down"}}, 429, {"Retry-After": "500"})
    with stand_in(lambda _: reply) as server, pytest.raises(Overload, match="answered 429: slow down"):
        generator(server.url).generate("x", STRING, FIELD)


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"providerId": "other"}, "No component with id 'other' was found. Available LLM components are: openai"),
        ({"promptTemplateFile": "ask.txt"}, "promptTemplateFile: file 'ask.txt' is not in the application package"),
        ({"promptTemplateFile": "none.txt"}, "Prompt template file is empty: none.txt"),
        ({"promptTemplateFile": "bad.txt"}, "promptTemplateFile: file 'bad.txt' is not UTF-8"),
        ({"responseFormatType": "XML"}, "'responseFormatType' must be JSON or TEXT, not 'XML'"),
        ({"invalidResponseFormatPolicy": "fail"}, "'invalidResponseFormatPolicy' must be DISCARD or WARN or FAIL"),
        ({"responseFormatType": "TEXT", "promptTemplate": "{jsonSchema}"}, "but responseFormatType is TEXT"),
    ],
)
def test_settings_that_are_wrong(settings: dict[str, str], problem: str) -> None:
    files = PackageFiles({"none.txt": b"", "bad.txt": b"\xff"})
    components = [
        model("http://127.0.0.1:1"),
        Component("component", "made", class_name=CLASS, settings=config(**settings)),
    ]
    (finding,) = check_components(components, files)
    assert finding.level == "ERROR" and problem in finding.message
    unusable = generators_of(components, files)["made"]
    unusable.check(STRING)
    with pytest.raises(ValueError, match=r"^component 'made': "):
        unusable.generate("x", STRING, FIELD)


@pytest.mark.parametrize(
    ("settings", "level", "problem"),
    [
        ({"endpoint": "localhost"}, "ERROR", "is not an address such as"),
        ({"maxTokens": "many"}, "ERROR", "'maxTokens' must be a whole number, not 'many'"),
        ({"temperature": "nan"}, "ERROR", "'temperature' must be a number, not 'nan'"),
        ({"jsonSchemaStrict": "yes"}, "ERROR", "'jsonSchemaStrict' must be true or false, not 'yes'"),
        ({"Model": "m"}, "WARNING", "there is no setting 'Model'; did you mean 'model'?"),
        ({"apiKeySecretRef": "k"}, "WARNING", "there is no secret 'k' (PAPERWASP_SECRET_K) yet"),
    ],
)
def test_settings_of_a_client_that_are_wrong(settings: dict[str, str], level: str, problem: str) -> None:
    client = Component("component", "openai", class_name="ai.vespa.llm.clients.OpenAI", settings=config(**settings))
    made = Component("component", "made", class_name=CLASS, settings=config())
    findings = [each for each in check_components([client, made], {}) if "No language models" not in each.message]
    assert [(each.level, problem in each.message) for each in findings] == [(level, True)]


def test_a_generator_without_a_language_model() -> None:
    (finding,) = check_components([Component("component", "made", class_name=CLASS)], {})
    assert finding.message == "component 'made': No language models were found"


def test_a_model_that_runs_in_the_service_is_named_wherever_it_is_used() -> None:
    """Vespa: LocalLLM.java. A package that has one is deployed, and says what to do instead."""
    local = Component("component", "local", class_name="ai.vespa.llm.clients.LocalLLM", settings=config(model="x"))
    made = Component("component", "made", class_name=CLASS, settings=config())
    (finding,) = check_components([local, made], {})
    said = "component 'local': a model that runs in the service, ai.vespa.llm.clients.LocalLLM, is not executed; "
    assert finding.level == "WARNING" and finding.message.startswith(said)
    with pytest.raises(InvalidInput) as refused:
        generators_of([local, made], PackageFiles({}))["made"].generate("a", STRING, FIELD)
    assert refused.value.message == finding.message


def test_all_schemas_share_a_client(chat: StandIn) -> None:
    first, second = (generators_of([model(chat.url), Component("component", "m", class_name=CLASS)], {}) for _ in "12")
    assert first["m"]._model is second["m"]._model  # type: ignore[attr-defined]
