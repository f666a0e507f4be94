"""Generators: components of services.xml that make values of fields by language models over HTTP.

Vespa: https://docs.vespa.ai/en/rag/document-enrichment.html, https://docs.vespa.ai/en/rag/external-llms.html
"""

from __future__ import annotations

import logging
import math
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from posixpath import normpath
from types import MappingProxyType
from typing import Any, Final, NamedTuple, Protocol
from weakref import WeakValueDictionary

import orjson

from paperwasp import limits
from paperwasp.base.patterns import compile_later
from paperwasp.components.json_client import Endpoint, JsonClient, find_secret, variable_of
from paperwasp.document.json_format import DocumentReader, read_body
from paperwasp.document.operations import Value
from paperwasp.document.types import (
    BOOL,
    BYTE,
    DOUBLE,
    FLOAT,
    FLOAT16,
    INT,
    LONG,
    STRING,
    ArrayType,
    DataType,
    DocumentType,
    MapType,
    StructType,
    WeightedSetType,
)
from paperwasp.errors import Finding, InvalidInput, Unavailable
from paperwasp.indexing.components import Context, Generator
from paperwasp.schema.files import Component
from paperwasp.text.parsing.tokens import did_you_mean

# The settings in the `config` element of a component: which there are, of which kind, and what they are by default.
#
# Vespa: the definitions llm-client.def and language-model-field-generator.def


_CONFIG: Final = "config/"


class Kind(NamedTuple):
    """A kind of setting."""

    description: str
    read: Callable[[str], Any]
    """From the text in services.xml. Errors: ValueError."""


def _number(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError
    return number


def choice(*names: str) -> Kind:
    """One of these words."""

    def read(text: str) -> str:
        if text not in names:
            raise ValueError
        return text

    return Kind(" or ".join(names), read)


TEXT: Final = Kind("text", str)
INTEGER: Final = Kind("a whole number", int)
NUMBER: Final = Kind("a number", _number)
BOOLEAN: Final = Kind("true or false", {"true": True, "false": False}.__getitem__)

Definition = Mapping[str, tuple[Kind, Any]]
"""Name of a setting → its kind and default."""


class Config:
    """The settings of one component."""

    def __init__(self, component: Component, definition: Definition) -> None:
        """Errors: ValueError for a value of another kind."""
        self._values = {name: default for name, (_, default) in definition.items()}
        for name, text in _given(component):
            kind = definition[name][0] if name in definition else None
            if kind is not None and text:
                self._values[name] = _read(name, text, kind)

    def __getitem__(self, name: str) -> Any:
        return self._values[name]


def check_names(component: Component, definition: Definition) -> Iterator[Finding]:
    """Warns of settings that there are not."""
    for name, _ in _given(component):
        if name not in definition:
            message = f"{component.kind} '{component.id}': there is no setting '{name}'{did_you_mean(name, definition)}"
            yield Finding(message, component.position, "WARNING")


def _given(component: Component) -> Iterator[tuple[str, str]]:
    for path, text in component.settings.items():
        name = path.removeprefix(_CONFIG)
        if name != path and "@" not in name:
            yield name, text


def _read(name: str, text: str, kind: Kind) -> Any:
    try:
        return kind.read(text)
    except (ValueError, KeyError):
        raise ValueError(f"'{name}' must be {kind.description}, not '{text[:100]}'") from None


# Language models that complete a prompt: clients of the chat completions that OpenAI and others serve.
#
#     ai.vespa.llm.clients.OpenAI        https://api.openai.com/v1/       gpt-4o-mini
#     ai.vespa.llm.clients.OrcaRouter    https://api.orcarouter.ai/v1/    orcarouter/fusion-mini
#
# `endpoint` may be that of any service with the same interface, with or without `chat/completions` at its end.
#
# Vespa: https://docs.vespa.ai/en/rag/external-llms.html, OpenAICompatibleClient.java
# Differs: LocalLLM is not executed; a call is over in two minutes, and tried three times.


_PATH: Final = "chat/completions"
_RETRIES: Final = 2
_UNSET: Final = -1
_DEFINITION: Final[Definition] = {
    "apiKeySecretRef": (TEXT, ""),
    "apiKeySecretName": (TEXT, ""),
    "endpoint": (TEXT, ""),
    "model": (TEXT, ""),
    "temperature": (NUMBER, _UNSET),
    "maxTokens": (INTEGER, _UNSET),
    "reasoningEffort": (TEXT, ""),
    "jsonSchemaStrict": (BOOLEAN, False),
}


class LanguageModel(Protocol):
    """Completes prompts. Any thread; blocks."""

    def complete(self, prompt: str, schema: Mapping[str, Any] | None, timeout_seconds: float) -> str:
        """The text that a model answers in that time. `schema`: what it is to follow, as JSON.

        Errors: InvalidInput, Overload, Timeout, Unavailable.
        """


class _Service(NamedTuple):
    endpoint: str
    model: str


SERVICES: Final[Mapping[str, _Service]] = {
    "ai.vespa.llm.clients.OpenAI": _Service("https://api.openai.com/v1/", "gpt-4o-mini"),
    "ai.vespa.llm.clients.OrcaRouter": _Service("https://api.orcarouter.ai/v1/", "orcarouter/fusion-mini"),
}
"""Class of a component → where it is, and the model, by default."""


LOCAL: Final = "ai.vespa.llm.clients.LocalLLM"


class ChatCompletions:
    """A language model behind an interface like OpenAI's."""

    def __init__(self, component: Component) -> None:
        """Errors: ValueError for settings that are wrong."""
        config = Config(component, _DEFINITION)
        service = SERVICES[component.class_name]
        url = config["endpoint"] or service.endpoint
        if not url.endswith(_PATH):
            url = f"{url.removesuffix('/')}/{_PATH}"
        self.secret_name: str = config["apiKeySecretRef"] or config["apiKeySecretName"]
        name = f"component '{component.id}'"
        timeout_seconds = limits.GENERATION_TIMEOUT_SECONDS
        self._client = JsonClient(Endpoint(url, name, self.secret_name, timeout_seconds, _RETRIES))
        self._name = name
        self._is_strict: bool = config["jsonSchemaStrict"]
        self._settings: dict[str, Any] = {"model": config["model"] or service.model}
        if config["temperature"] >= 0:
            self._settings["temperature"] = config["temperature"]
        if config["maxTokens"] >= 0:
            self._settings["max_completion_tokens"] = config["maxTokens"]
        if config["reasoningEffort"]:
            self._settings["reasoning_effort"] = config["reasoningEffort"]

    def complete(self, prompt: str, schema: Mapping[str, Any] | None, timeout_seconds: float) -> str:
        """The text of the first choice."""
        body = {**self._settings, "messages": [{"role": "user", "content": prompt}]}
        if schema is not None:
            strict = {"strict": True} if self._is_strict else {}
            shape = {"name": "structured-output", "schema": schema, **strict}
            body["response_format"] = {"type": "json_schema", "json_schema": shape}
        return self._text(self._client.post(body, timeout_seconds))

    def _text(self, answer: Any) -> str:
        """Errors: Unavailable for an answer of another form."""
        try:
            text = answer["choices"][0]["message"]["content"]
        except (LookupError, TypeError):
            text = None
        if not isinstance(text, str):
            raise Unavailable(f"{self._name}: {self._client.endpoint.url} answered without a text: {str(answer)[:500]}")
        return text


class LocalModel:
    """A language model that Vespa runs in the service itself. It is not executed here, and says so when it is asked."""

    def __init__(self, component: Component) -> None:
        self.reason: Final = (
            f"component '{component.id}': a model that runs in the service, {component.class_name}, is not executed; "
            "serve the model with an interface like OpenAI's, and name its address as 'endpoint' of a component of "
            f"class {next(iter(SERVICES))}"
        )

    def complete(self, prompt: str, schema: Mapping[str, Any] | None, timeout_seconds: float) -> str:
        """Errors: InvalidInput, always."""
        raise InvalidInput(self.reason)


def check_language_model(component: Component) -> Iterator[Finding]:
    """Check the settings of a client of a language model. Errors: ValueError for settings that are wrong."""
    yield from check_names(component, _DEFINITION)
    secret_name = ChatCompletions(component).secret_name
    if secret_name and find_secret(secret_name) is None:
        message = f"component '{component.id}': there is no secret '{secret_name}' ({variable_of(secret_name)}) yet"
        yield Finding(message, component.position, "WARNING")


# The JSON schema of values of a type, in the form in which documents are fed.
#
# Vespa: https://docs.vespa.ai/en/rag/document-enrichment.html#structured-output, FieldGeneratorUtils.java


_SINGLES: Final[Mapping[DataType, str]] = {
    BOOL: "boolean",
    STRING: "string",
    **dict.fromkeys((BYTE, INT, LONG), "integer"),
    **dict.fromkeys((FLOAT16, FLOAT, DOUBLE), "number"),
}


def schema_of_field(name: str, type_: DataType) -> dict[str, Any]:
    """The schema of `{name: value}`, where nothing else may stand. Errors: ValueError for a type that has none."""
    try:
        value = _schema(type_)
    except ValueError as error:
        raise ValueError(f"a field of type {type_} cannot be generated: {error}") from None
    return {"type": "object", "properties": {name: value}, "required": [name], "additionalProperties": False}


def _schema(type_: DataType) -> dict[str, Any]:
    if type_ in _SINGLES:
        return {"type": _SINGLES[type_]}
    match type_:
        case ArrayType():
            return {"type": "array", "items": _schema(type_.element)}
        case WeightedSetType():
            return {"type": "object", "additionalProperties": {"type": "integer"}}
        case MapType():
            return {"type": "object", "additionalProperties": _schema(type_.value)}
        case StructType():
            return {
                "type": "object",
                "properties": {name: _schema(each) for name, each in type_.fields},
                "required": [name for name, _ in type_.fields],
                "additionalProperties": False,
            }
    raise ValueError(f"there is no JSON schema for values of type {type_}")


# ai.vespa.llm.generation.LanguageModelFieldGenerator: values of fields that a language model makes of a prompt.
#
#     template, text before `generate` → prompt → language model → JSON that follows the field's schema → value
#
# `{input}` in the template is the text, `{jsonSchema}` the schema; without a template the text is the prompt. An answer
# that cannot be read is dropped (DISCARD), dropped with a line in the log (WARN), or refuses the document (FAIL).
#
# Vespa: https://docs.vespa.ai/en/rag/document-enrichment.html, LanguageModelFieldGenerator.java
# Differs: placeholders in the document's own text are no placeholders.


_LOG: Final = logging.getLogger("paperwasp.generators")
_INPUT, _SCHEMA = "{input}", "{jsonSchema}"
_PLACEHOLDERS: Final = compile_later("|".join(map(re.escape, (_INPUT, _SCHEMA))))
_SHOWN: Final = 500
DEFINITION: Final[Definition] = {
    "providerId": (TEXT, ""),
    "promptTemplate": (TEXT, ""),
    "promptTemplateFile": (TEXT, ""),
    "responseFormatType": (choice("JSON", "TEXT"), "JSON"),
    "invalidResponseFormatPolicy": (choice("DISCARD", "WARN", "FAIL"), "DISCARD"),
}


class File(Protocol):
    """A file of the package."""

    def read(self) -> bytes: ...


class FieldGenerator:
    """Generates values by a language model (`indexing.components.Generator`)."""

    def __init__(self, component: Component, models: Mapping[str, LanguageModel], files: Mapping[str, File]) -> None:
        """Errors: ValueError for settings that are wrong, a model or a file that is not there."""
        config = Config(component, DEFINITION)
        self._model = _find_model(config["providerId"], models)
        self._is_json = config["responseFormatType"] == "JSON"
        self._policy: str = config["invalidResponseFormatPolicy"]
        self._template = config["promptTemplate"] or _read_template(config["promptTemplateFile"], files)
        if not self._is_json and _SCHEMA in self._template:
            raise ValueError(f"'promptTemplate' has {_SCHEMA}, but responseFormatType is TEXT")

    def check(self, type: DataType) -> None:
        """Errors: ValueError for a type of field that it makes no values of."""
        if self._is_json:
            schema_of_field("", type)
        elif type != STRING:
            raise ValueError(f"responseFormatType TEXT makes a string, but type {type} is needed")

    def generate(self, prompt: str, type: DataType, context: Context) -> Value | None:
        """A value of the type; None: the model's answer was not one. Errors: ValueError; those of the model."""
        schema = schema_of_field(context.destination, type) if self._is_json else None
        answer = self._model.complete(self._expanded(prompt, schema), schema, context.timeout_seconds)
        if schema is None:
            return answer
        try:
            return _value(answer, type, context.destination)
        except ValueError as error:
            if self._policy == "FAIL":
                raise
            if self._policy == "WARN":
                _LOG.warning("%s: %s", context.destination, error)
            return None

    def _expanded(self, text: str, schema: Mapping[str, Any] | None) -> str:
        """The prompt."""
        if not self._template:
            return text
        shown = orjson.dumps(schema, option=orjson.OPT_INDENT_2).decode() if schema is not None else ""
        return _PLACEHOLDERS.sub(lambda found: text if found[0] == _INPUT else shown, self._template)


def _find_model(name: str, models: Mapping[str, LanguageModel]) -> LanguageModel:
    if not models:
        raise ValueError("No language models were found")
    if not name:
        return next(iter(models.values()))
    if name not in models:
        raise ValueError(f"No component with id '{name}' was found. Available LLM components are: {','.join(models)}")
    return models[name]


def _read_template(path: str, files: Mapping[str, File]) -> str:
    if not path:
        return ""
    file = files.get(normpath(path))
    if file is None:
        raise ValueError(f"promptTemplateFile: file '{path}' is not in the application package")
    try:
        template = file.read().decode()
    except UnicodeDecodeError:
        raise ValueError(f"promptTemplateFile: file '{path}' is not UTF-8") from None
    if not template:
        raise ValueError(f"Prompt template file is empty: {path}")
    return template


def _value(answer: str, type_: DataType, name: str) -> Value | None:
    """The value in `{name: value}`, read as that of a document that is fed. Errors: ValueError."""
    reader = DocumentReader(DocumentType("generated", {name: type_}))
    try:
        return reader.read_put(read_body(b'{"fields":%b}' % answer.encode()).fields).get(name)
    except InvalidInput as error:
        problem = f"Failed to parse JSON value for field {name} of type {type_}: {answer[:_SHOWN]}"
        raise ValueError(f"{problem}: {error.message}") from None
    except UnicodeEncodeError:
        raise ValueError(f"Failed to parse JSON value for field {name} of type {type_}: not UTF-8") from None


# From the components of an application to its generators, and what is wrong with a component.
#
# A client of a language model is shared by all that have the same component: its limit of requests at a time holds for
# all schemas together. A generator that cannot be used is there all the same, and says why when it is called.


_FIELD_GENERATOR: Final = "ai.vespa.llm.generation.LanguageModelFieldGenerator"
_Key = tuple[str, str, tuple[tuple[str, str], ...]]
_SHARED: Final[WeakValueDictionary[_Key, ChatCompletions]] = WeakValueDictionary()
_LOCK: Final = threading.Lock()


class Unusable:
    """A generator that cannot be used."""

    def __init__(self, reason: str) -> None:
        self._reason = reason

    def check(self, type: DataType) -> None:
        """Nothing: the deployment has reported the reason."""

    def generate(self, prompt: str, type: DataType, context: Context) -> Value | None:
        """Errors: ValueError, always."""
        raise ValueError(self._reason)


def is_executed(component: Component) -> bool:
    """Return whether a component is a generator or a language model that can be run."""
    return component.class_name in (_FIELD_GENERATOR, LOCAL, *SERVICES)


def generators_of(components: Sequence[Component], files: Mapping[str, File]) -> Mapping[str, Generator]:
    """Id → generator."""
    models = _models(components)
    found: dict[str, Generator] = {}
    for component in components:
        if component.class_name == _FIELD_GENERATOR:
            try:
                found[component.id] = FieldGenerator(component, models, files)
            except ValueError as error:
                found[component.id] = Unusable(f"component '{component.id}': {error}")
    return MappingProxyType(found)


def check_components(components: Sequence[Component], files: Mapping[str, File]) -> Iterator[Finding]:
    """Check the generators and language models of an application."""
    models = _models(components)
    for component in components:
        try:
            if component.class_name in SERVICES:
                yield from check_language_model(component)
            elif component.class_name == LOCAL:
                yield Finding(LocalModel(component).reason, component.position, "WARNING")
            elif component.class_name == _FIELD_GENERATOR:
                yield from check_names(component, DEFINITION)
                FieldGenerator(component, models, files)
        except ValueError as error:
            yield Finding(f"component '{component.id}': {error}", component.position, "ERROR")


def _models(components: Sequence[Component]) -> Mapping[str, LanguageModel]:
    """The language models that can be named. What is wrong with others is reported for themselves."""
    found: dict[str, LanguageModel] = {}
    for component in components:
        if component.class_name == LOCAL:
            found[component.id] = LocalModel(component)
        if component.class_name in SERVICES:
            try:
                found[component.id] = _shared(component)
            except ValueError:
                continue
    return found


def _shared(component: Component) -> ChatCompletions:
    """The client of a component; the same one as long as somebody has it. Errors: ValueError."""
    key = component.id, component.class_name, tuple(sorted(component.settings.items()))
    with _LOCK:
        found = _SHARED.get(key)
        if found is None:
            found = _SHARED[key] = ChatCompletions(component)
        return found
