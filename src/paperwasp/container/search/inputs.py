"""`input.query(name)`: from the text of a value to a number, a text or a tensor, as the rank profile declares it.

A tensor may be written as a literal, or as JSON has it in documents. What no rank profile declares is a number if it
looks like one, else a text.
Vespa: https://docs.vespa.ai/en/reference/schemas/schemas.html#inputs
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Final

import orjson
from msgspec import Struct, field

from paperwasp import limits
from paperwasp.admin.monitoring.numbers import EMBEDDING
from paperwasp.base.patterns import compile_later
from paperwasp.container.search.values import SentArray
from paperwasp.document.tensor.json_format import flat_tensor, tensor_of
from paperwasp.document.tensor.literal import parse_tensor
from paperwasp.document.tensor.types import TensorType
from paperwasp.document.tensor.value import Tensor
from paperwasp.errors import (
    IllegalQuery,
    InvalidQuery,
    LanguageError,
    Overload,
    PaperwaspError,
    Timeout,
    TooLarge,
    Unavailable,
)
from paperwasp.indexing.components import Context, Embedder
from paperwasp.schema.model import Input, Schema
from paperwasp.text.large_json import load_json

_NUMBER: Final = compile_later(r"\s*[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?[fFdD]?\s*", re.ASCII)
_JSON_FORM: Final = compile_later(
    r'\s*(?:\{\s*"(?:type|cells|values|blocks)"\s*:|\[\s*\{\s*"(?:address|value|values)"\s*:)'
)
_REMEMBERED_CHARACTERS: Final = 2048
_TEXT: Final = Input(None)
_NO_EMBEDDERS: Final[Mapping[str, Embedder]] = MappingProxyType({})


class InputTypes(Struct, frozen=True):
    """The declared types of some inputs: by rank profiles, and by the type of the query profile."""

    declared: Mapping[str, Input]
    by_profile: Mapping[str, TensorType]
    embedders: Mapping[str, Embedder] = field(default_factory=lambda: _NO_EMBEDDERS)

    def values(self, inputs: Mapping[str, str], given: Mapping[str, str], language: str) -> dict[str, object]:
        """query(name) → number, text, Tensor, or the Embedding that makes it.

        `given`: all parameters of the request. `language`: of the query's text, as a tag.
        Errors: IllegalQuery for a value that is not of its type.
        """
        found: dict[str, object] = {}
        for name, text in inputs.items():
            declared, by_profile = self.declared.get(name), self.by_profile.get(name)
            type_ = declared.type if declared is not None else by_profile
            if type_ is not None and is_call(text):
                found[name] = self._embedding(name, text, type_, given, language)
            else:
                found[name] = _value(name, text, declared, by_profile)
        return found

    def _embedding(self, name: str, text: str, type_: TensorType, given: Mapping[str, str], language: str) -> Embedding:
        try:
            embedder, embedded = read_call(text, self.embedders, given)
        except ValueError as error:
            raise not_set(name, text, str(error)) from None
        return Embedding(name, text, embedder, embedded, type_, language)


def input_types(
    names: Iterable[str],
    by_profile: Mapping[str, TensorType],
    schemas: Iterable[Schema],
    rank_profile: str,
    embedders: Mapping[str, Embedder] | None = None,
) -> InputTypes:
    """The types of the inputs `query(name)`. Errors: InvalidQuery where schemas declare different ones."""
    found: dict[str, tuple[Schema, Input]] = {}
    for schema in schemas:
        profile = schema.rank_profiles.get(rank_profile)
        for name in names if profile is not None else ():
            assert profile is not None
            own = profile.inputs.get(name)
            if own is None:
                continue
            first, other = found.setdefault(name, (schema, own))
            if other.type != own.type:
                raise InvalidQuery(
                    f"Conflicting input type declarations for 'query({name})': Declared as {_describe(other.type)} in "
                    f"rank profile '{rank_profile}' of schema '{first.name}', and as {_describe(own.type)} in that of "
                    f"schema '{schema.name}'"
                )
    return InputTypes({name: own for name, (_, own) in found.items()}, by_profile, embedders or _NO_EMBEDDERS)


def _describe(type_: TensorType | None) -> str:
    """The type of an input, for people."""
    if type_ is None:
        return "string"
    return "number" if type_.is_number else str(type_)


def _value(name: str, text: str, declared: Input | None, by_profile: TensorType | None) -> object:
    type_ = declared.type if declared is not None else by_profile
    if type(text) is SentArray:
        if (vector := _sent_vector(text, type_)) is not None:
            return vector
        text = str(text)  # orjson reads no other kind of text
    try:
        if declared is None and by_profile is None:
            return float(text.strip().rstrip("fFdD")) if _NUMBER.fullmatch(text) else text
        if type_ is None:
            return text
        tensor = (_remembered if len(text) <= _REMEMBERED_CHARACTERS else _read)(text, type_)
        return float(tensor.cells[0]) if type_.is_number else tensor
    except LanguageError as error:
        problem = error.bare_message
    except (TooLarge, ValueError) as error:
        problem = str(error)
    if type_ is not None and str(type_) not in problem:
        problem += f" (it is to be a {_describe(type_)})"
    raise not_set(name, text, problem)


def _sent_vector(text: SentArray, type_: TensorType | None) -> Tensor | None:
    """The vector that was sent as a JSON array of numbers; None for what is to be read from its text."""
    values = text.take()
    if type_ is None or len(text) > limits.LANGUAGE_TEXT_BYTES:
        return None
    try:
        return flat_tensor(values, type_)
    except ValueError:  # who reads the text says what is wrong
        return None


def _read(text: str, type_: TensorType) -> Tensor:
    """A tensor in the literal form, or in one of the forms of documents: an object with `cells`, `values` or `blocks`,
    and perhaps `type`, or a list of cells or blocks."""
    if _JSON_FORM.match(text):
        try:
            value = load_json(text.encode())
        except orjson.JSONDecodeError:
            return parse_tensor(text, type_)
        return tensor_of(value, type_)
    return parse_tensor(text, type_)


_remembered: Final = lru_cache(maxsize=256)(_read)


# `embed(…)` as the value of a query's input: which embedder makes the tensor, and of which text.
#
#     embed(id, "text")   embed(id, 'text')   embed(id, @parameter)
#     embed(text)         embed("text")       embed(@parameter)        where there is one embedder only
#
# A query is made ready without waiting for an embedder: it has an `Embedding` for each such input, which a thread makes
# a tensor before the query is sent.
#
# Vespa: https://docs.vespa.ai/en/rag/embedding.html#embedding-a-query-text, TensorConverter.java
# Differs: a quoted text may have line ends. Without an embedder, Vespa names a class of its own as the only one.


_CALL: Final = "embed("
_WITH_ID: Final = compile_later(r"""([A-Za-z0-9_@.-]+),\s*(["'].*["']|@.*)""", re.DOTALL)
_QUOTES: Final = ("'", '"')
_REFERENCE: Final = "@"
_SHOWN_CHARACTERS: Final = 100
_NONE: Final = "No embedder has been configured"


class Embedding(Struct, frozen=True):
    """An input `query(name)` of a query that an embedder is to make."""

    name: str
    written: str
    """The value of the input, for messages."""
    embedder: Embedder
    text: str
    type: TensorType
    language: str = ""

    def make(self, seconds_left: Callable[[], float]) -> Tensor:
        """The tensor. Blocks, for no longer than is left where it waits for an embedder elsewhere.

        Errors: IllegalQuery; Overload, Timeout, Unavailable of an embedder elsewhere.
        """
        left = seconds_left()
        if left <= 0:
            raise Timeout(_problem(self.name, self.written, "the query's time is over"))
        context = Context(f"query({self.name})", self.language, timeout_seconds=left)
        try:
            with EMBEDDING.timed(is_query=True):
                return self.embedder.embed([self.text], self.type, context)[0]
        except (Overload, Timeout, Unavailable) as error:
            raise type(error)(_problem(self.name, self.written, error.message)) from None
        except LanguageError as error:
            problem = error.bare_message
        except (PaperwaspError, ValueError) as error:
            problem = str(error)
        raise not_set(self.name, self.written, problem)


def not_set(name: str, written: str, problem: str) -> IllegalQuery:
    """The error of an input whose value cannot be used."""
    return IllegalQuery(_problem(name, written, problem))


def _problem(name: str, written: str, problem: str) -> str:
    shown = written if len(written) <= _SHOWN_CHARACTERS else f"{written[:_SHOWN_CHARACTERS]}…"
    return f"Could not set 'ranking.features.query({name})' to '{shown}': {problem}"


def is_call(written: str) -> bool:
    """Whether the value of an input asks for an embedder."""
    return written.startswith(_CALL)


def read_call(written: str, embedders: Mapping[str, Embedder], given: Mapping[str, str]) -> tuple[Embedder, str]:
    """The embedder that a call names and the text for it. `given`: the request's parameters. Errors: ValueError."""
    if not written.endswith(")"):
        raise ValueError("Expected any string enclosed in embed(), but the argument does not end by ')'")
    argument = written[len(_CALL) : -1]
    named = _WITH_ID.fullmatch(argument)
    if named is not None:
        if named[1] not in embedders:
            known = _ids(embedders) if embedders else _NONE
            raise ValueError(f"Can't find embedder '{named[1]}'. {known}")
        return embedders[named[1]], _text(named[2], given)
    if not embedders:
        raise ValueError(_NONE)
    if len(embedders) > 1:
        is_quoted = any(quote in argument for quote in _QUOTES)
        problem = "no embedder id is given" if is_quoted else "the string to embed is not quoted"
        usage = f"Usage: embed(embedder-id, 'text'). {_ids(embedders)}"
        raise ValueError(f"Multiple embedders are provided but {problem}. {usage}")
    return next(iter(embedders.values())), _text(argument, given)


def _text(argument: str, given: Mapping[str, str]) -> str:
    if len(argument) > 1 and argument[0] in _QUOTES and argument[0] == argument[-1]:
        return argument[1:-1]
    if not argument.startswith(_REFERENCE):
        return argument
    name = argument[len(_REFERENCE) :]
    if name not in given:
        raise ValueError(f"Could not resolve query parameter reference '{name}' used in an embed() argument")
    return given[name]


def _ids(embedders: Mapping[str, Embedder]) -> str:
    listed = ", ".join(f"'{name}'" for name in sorted(embedders))
    return f"Available embedder ids are {listed}."
