"""What document/v1 shows of stored documents: all values, but those that Vespa's JSON hides.

    a text, URI, array, map or weighted set that is empty      hidden, of the document and of structs in it; an empty
                                                               text in an array or map is shown
    an attribute's value that stands for none                  hidden: its column, which Vespa asks, has none
    an attribute of type bool that is unset                    shown as false
    a predicate that is an attribute                           shown as it is indexed (`document.predicate_shown`)

Structs, references and raws are shown when they are empty, and so are tensors.

Vespa: JsonSerializationHelper.java, document_field_retriever.cpp
Differs: an empty array, map or set in an array or map is shown. Vespa writes nothing there: the elements behind one in
an array move, and a map is no JSON.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any, Final

import orjson

from paperwasp.core import _core
from paperwasp.document.predicate_shown import PredicateIndex, shown_predicate
from paperwasp.document.pruning import Prune, pruner
from paperwasp.document.types import (
    STRING,
    URI,
    ArrayType,
    DataType,
    MapType,
    StructType,
    WeightedSetType,
)

Json = Any
_EMPTY: Final = (b':""', b":[]", b":{}")


class ShownFields:
    """The fields of one document type. A document of which nothing is hidden costs a few looks at its bytes."""

    def __init__(
        self,
        types: Mapping[str, DataType],
        unset: Mapping[str, Json],
        bools: Iterable[str],
        predicates: Mapping[str, PredicateIndex] = MappingProxyType({}),
    ) -> None:
        """`unset`: by attribute the JSON that stands for no value; `bools`: the attributes that are false then;
        `predicates`: by attribute how it is indexed."""
        self._hidden = {name for name, kind in types.items() if _is_hidden_when_empty(kind)}
        self._pruners = {name: prune for name, kind in types.items() if (prune := pruner(kind, _struct_pruner))}
        self._pruners |= {name: partial(shown_predicate, index=index) for name, index in predicates.items()}
        self._unset = unset
        self._bools = {name: _key(name) for name in bools}
        literals = {b":" + orjson.dumps(value) for value in unset.values()}
        self._needles = (*_EMPTY, *sorted(literals - set(_EMPTY)), *map(_key, predicates))

    def render(self, data: bytes, names: Container[str] | None) -> bytes:
        """Renders a stored JSON object, of which these fields are shown; None: all."""
        for needle in self._needles:
            if needle in data:
                data = self._render_hidden(data)
                break
        for name, key in self._bools.items():
            if (names is None or name in names) and not _has_member(data, key):
                data = b"%b%b%bfalse}" % (data[:-1], b"" if data == b"{}" else b",", key)
        return data

    def _render_hidden(self, data: bytes) -> bytes:
        fields: dict[str, Json] = orjson.loads(data)
        shown = {name: self._pruned(name, value) for name, value in fields.items() if not self._is_hidden(name, value)}
        return data if shown == fields else orjson.dumps(shown)

    def _is_hidden(self, name: str, value: Json) -> bool:
        return (not value and name in self._hidden) or (name in self._unset and value == self._unset[name])

    def _pruned(self, name: str, value: Json) -> Json:
        prune = self._pruners.get(name)
        return value if prune is None else prune(value)


def _has_member(data: bytes, key: bytes) -> bool:
    return key in data and _core.pick_members([data], [key], 1)[0] is not None


def _key(name: str) -> bytes:
    return orjson.dumps(name) + b":"


def _is_hidden_when_empty(data_type: DataType) -> bool:
    return data_type in (STRING, URI) or isinstance(data_type, ArrayType | MapType | WeightedSetType)


def _struct_pruner(data_type: StructType, inner: Mapping[str, Prune]) -> Prune:
    """Takes away members that are hidden."""
    hidden = {name for name, kind in data_type.fields if _is_hidden_when_empty(kind)}

    def prune(members: Json) -> Json:
        return {
            name: inner[name](value) if name in inner else value
            for name, value in members.items()
            if value or name not in hidden
        }

    return prune
