"""`input.query(name)`: from the text of a value to a number, a text or a tensor, as the rank profile declares it.

A tensor may be written as a literal, or as JSON has it in documents. What no rank profile declares is a number if it
looks like one, else a text.
Vespa: https://docs.vespa.ai/en/reference/schemas/schemas.html#inputs
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Final

import orjson
from msgspec import Struct, field

from paperwasp import limits
from paperwasp.base.patterns import compile_later
from paperwasp.container.search.embedding import Embedding, is_call, not_set, read_call
from paperwasp.container.search.values import SentArray
from paperwasp.document.tensor.json_format import flat_tensor, tensor_of
from paperwasp.document.tensor.literal import parse_tensor
from paperwasp.document.tensor.types import TensorType
from paperwasp.document.tensor.value import Tensor
from paperwasp.errors import (
    InvalidQuery,
    LanguageError,
    TooLarge,
)
from paperwasp.indexing.components import Embedder
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
