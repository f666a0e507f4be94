"""ai.vespa.llm.generation.LanguageModelFieldGenerator: values of fields that a language model makes of a prompt.

    template, text before `generate` → prompt → language model → JSON that follows the field's schema → value

`{input}` in the template is the text, `{jsonSchema}` the schema; without a template the text is the prompt. An answer
that cannot be read is dropped (DISCARD), dropped with a line in the log (WARN), or refuses the document (FAIL).

Vespa: https://docs.vespa.ai/en/rag/document-enrichment.html, LanguageModelFieldGenerator.java
Differs: placeholders in the document's own text are no placeholders.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from posixpath import normpath
from typing import Any, Final, Protocol

import orjson

from paperwasp.base.patterns import compile_later
from paperwasp.components.generators.config import TEXT, Config, Definition, choice
from paperwasp.components.generators.json_schema import schema_of_field
from paperwasp.components.generators.language_models import LanguageModel
from paperwasp.document.json_format import DocumentReader, read_body
from paperwasp.document.operations import Value
from paperwasp.document.types import STRING, DataType, DocumentType
from paperwasp.errors import InvalidInput
from paperwasp.indexing.context import Context
from paperwasp.schema.files import Component

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
