"""Inputs of queries that embedders make: a query is made ready without waiting for them. It has an `Embedding` for each
such input, which a thread makes a tensor before the query is sent.

Vespa: https://docs.vespa.ai/en/rag/embedding.html#embedding-a-query-text, TensorConverter.java
Differs: a quoted text may have line ends. Without an embedder, Vespa names a class of its own as the only one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final

from msgspec import Struct

from paperwasp.base.measurements import EMBEDDING
from paperwasp.base.patterns import compile_later
from paperwasp.document.tensor.types import TensorType
from paperwasp.document.tensor.value import Tensor
from paperwasp.errors import (
    IllegalQuery,
    LanguageError,
    Overload,
    PaperwaspError,
    Timeout,
    Unavailable,
)
from paperwasp.indexing.components import Context, Embedder

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
