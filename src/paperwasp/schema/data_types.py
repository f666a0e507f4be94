"""Names of field types → data types, with the structs that a schema declares.

A struct's type holds the types of its fields, and itself by its name; longer cycles are refused. Depth and size of a
type are limited, as a few structs of structs can make a type that has no end for all who walk it.

Vespa: https://docs.vespa.ai/en/reference/schemas/schemas.html#field-types
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from typing import Final

from paperwasp import limits
from paperwasp.base.patterns import compile_later
from paperwasp.document.tensor.types import TensorType
from paperwasp.document.types import (
    BOOL,
    FLOAT16,
    POSITION,
    PREDICATE,
    PRIMITIVES,
    RAW,
    SINGLE_TYPES,
    STRING,
    TAG,
    URI,
    AnnotationReferenceType,
    ArrayType,
    DataType,
    InnerStructType,
    MapType,
    NumericType,
    ReferenceType,
    StructType,
    TensorFieldType,
    WeightedSetType,
    array_of,
    map_of,
    reference_to,
    struct_of,
    tensor_field,
    unroll,
    weighted_set_of,
)
from paperwasp.errors import Position
from paperwasp.schema.tree import Problems, SchemaNode, nearest

_GENERIC: Final = compile_later(r"(\w+)<(.*)>", re.DOTALL)
_TENSOR: Final = compile_later(r"tensor(?![\w-])")
"""The beginning of a tensor type: a struct may have a name that begins so."""
_COLLECTIONS: Final = ("array", "weightedset", "map", "reference", "annotationreference", "tensor")
_KEYS: Final[frozenset[DataType]] = frozenset({*PRIMITIVES.values(), FLOAT16, URI, RAW})
"""The types that the key of a map may have."""
_SET_KEYS: Final = frozenset({"bool", "byte", "int", "long", "string", "uri"})
RESERVED_NAMES: Final = frozenset(
    {"attribute", "case", "documentid", "else", "host", "if", "index", "index_url", "position", "relevancy"}
    | {"sddocname", "select_input", "split_foreach", "summary", "switch", "tokenize"}
)
"""Field names that Vespa refuses, in any case of letters."""


class TypeScope:
    """The types that one document and its schema can name: built in, and the structs that are declared or inherited."""

    def __init__(
        self,
        structs: Iterable[SchemaNode],
        annotations: Iterable[SchemaNode],
        inherited: Mapping[str, DataType],
        ambiguous: Iterable[str],
        inherited_annotations: Iterable[str],
        problems: Problems,
    ) -> None:
        self.problems = problems
        self.declared: dict[str, SchemaNode] = {}
        self.annotations = set(inherited_annotations)
        self.structs: dict[str, DataType] = dict(inherited)
        self.ambiguous = set(ambiguous)
        """Names of different structs in several parents. Fields may have such types; only to name one is an error."""
        self.failed: set[str] = set()
        """Structs that have no type; to name them elsewhere is no further problem."""
        self.parts = 0
        """Fields of structs, and types within fields of documents, so far."""
        self._path: list[str] = []
        self._depth = 0
        self._sizes: dict[str, tuple[int, int]] = {}
        """Name of a type → the parts within it and its depth."""
        self._known: dict[str, DataType] = {}
        annotated = tuple(annotations)
        self._declare_annotations(annotated)
        for node in structs:
            self._declare(node)
        for name in tuple(self.declared):
            self._struct(name)
        for node in annotated:
            self._fields(node, {})

    def _declare(self, node: SchemaNode) -> None:
        if node.name in self.declared or node.name in self.structs:
            self.problems.error(f"struct {node.name} is defined twice", node.position)
        elif node.name in SINGLE_TYPES or node.name in (*_COLLECTIONS, TAG.name):
            self.problems.error(f"struct {node.name} has the name of a built-in type", node.position)
        else:
            self.declared[node.name] = node
            self.ambiguous.discard(node.name)

    def _declare_annotations(self, nodes: tuple[SchemaNode, ...]) -> None:
        for node in nodes:
            if node.name in self.annotations:
                self.problems.error(f"annotation {node.name} is defined twice", node.position)
            self.annotations.add(node.name)
        for node in nodes:
            for parent in node.inherits:
                if parent not in self.annotations:
                    message = f"annotation {node.name} inherits {parent!r}, which does not exist"
                    self.problems.error(message + nearest(parent, self.annotations), node.position)

    # Structs

    def _struct(self, name: str) -> DataType | None:
        """The type of a struct, made when it is first needed; None, with an error, where there is none."""
        if name in self.structs or name in self.failed or name not in self.declared:
            return self.structs.get(name)
        node = self.declared[name]
        if name in self._path:
            cycle = " holds ".join([*self._path[self._path.index(name) :], name])
            self.problems.error(f"a cycle of structs: {cycle}", node.position)
            return None
        if len(self._path) >= limits.DATA_TYPE_DEPTH:
            self.problems.error(f"structs are nested deeper than {limits.DATA_TYPE_DEPTH}", node.position)
            return None
        self._path.append(name)
        outer, self._depth = self._depth, max(self._depth, len(self._path))
        fields = self._fields(node, self._inherited_fields(node))
        self._depth = outer
        self._path.pop()
        if fields is None or not self._fits(name, fields.values(), node.position):
            self.failed.add(name)
            return None
        self.parts += len(fields)
        if self.parts > limits.SCHEMA_PARTS:
            self.failed.add(name)
            return self._refuse(f"the structs have more than {limits.SCHEMA_PARTS} fields together", node)
        self.structs[name] = struct_of(name, fields)
        return self.structs[name]

    def _inherited_fields(self, node: SchemaNode) -> dict[str, DataType] | None:
        fields: dict[str, DataType] = {}
        for parent in node.inherits:
            type_ = self._struct(parent)
            if isinstance(type_, StructType):
                for name, within in type_.fields:
                    inherited = unroll(within)
                    if fields.setdefault(name, inherited) != inherited:
                        message = f"struct {node.name} inherits different fields {name} from its parents"
                        self.problems.error(message, node.position)
            elif parent in self.declared or parent in self.failed:
                return None
            else:
                message = f"struct {node.name} inherits {parent!r}, which "
                if parent in self.ambiguous:
                    message += "is a different struct in several parents"
                else:
                    message += f"does not exist{nearest(parent, {*self.structs, *self.declared})}"
                self.problems.error(message, node.position)
                return None
        return fields

    def _fields(self, node: SchemaNode, inherited: Mapping[str, DataType] | None) -> dict[str, DataType] | None:
        fields = dict(inherited or {})
        own: set[str] = set()
        whole = inherited is not None
        for child in node.all("field"):
            if child.name.lower() in RESERVED_NAMES:
                self.problems.error(f"{child.name!r} is reserved and cannot be the name of a field", child.position)
            if child.name in fields:
                how = "defined twice" if child.name in own else "inherited already"
                self.problems.error(f"field {child.name} of {node.describe()} is {how}", child.position)
            own.add(child.name)
            type_ = self.type_of(child)
            whole = whole and type_ is not None
            if type_:
                fields[child.name] = type_
        return fields if whole else None

    # Types

    def type_of(self, node: SchemaNode) -> DataType | None:
        """The type that `node` declares; None after telling why there is none."""
        type_ = self._parse(node.type, node)
        if type_ is not None:
            self.parts += self._measure(type_)[0]
        return type_

    def _parse(self, text: str, node: SchemaNode) -> DataType | None:
        known = SINGLE_TYPES.get(text) or self._known.get(text)
        if known is not None:
            return known
        if self._depth >= limits.DATA_TYPE_DEPTH:
            return self._refuse(f"types are nested deeper than {limits.DATA_TYPE_DEPTH}", node)
        self._depth += 1
        found = self._resolve_name(text, node)
        self._depth -= 1
        if found is None or isinstance(found, StructType | InnerStructType):
            return found
        if not self._fits(text, found.inner, node.position):
            return None
        if not self._path:  # within a struct, a type may hold the struct by its name
            self._known[text] = found
        return found

    def _resolve_name(self, text: str, node: SchemaNode) -> DataType | None:
        if _TENSOR.match(text):
            return self._tensor(text, node)
        if generic := _GENERIC.fullmatch(text):
            return self._collection(generic[1], generic[2], node)
        if text == TAG.name:
            return TAG
        if self._path and text == self._path[-1]:
            return InnerStructType(text, self.structs)
        if text in self.declared or text in self.structs:
            return self._struct(text)
        if text in self.ambiguous:
            self._refuse(f"the type {text} of {node.describe()} is a different struct in several parents", node)
        elif text not in self.failed:
            words = [*SINGLE_TYPES, TAG.name, *_COLLECTIONS, *self.structs, *self.declared]
            self._refuse(f"unknown type {text!r} of {node.describe()}{nearest(text, words)}", node)
        return None

    def _tensor(self, text: str, node: SchemaNode) -> DataType | None:
        try:
            type_ = TensorType.parse(text)
        except ValueError as error:
            return self._refuse(f"the type of {node.describe()}: {error}", node)
        if any(dimension.size == 0 for dimension in type_.dimensions):
            return self._refuse(f"{node.describe()} of type {text}: dense tensor dimensions must have a size", node)
        if math.prod(type_.shape) > limits.FIELD_TENSOR_CELLS:
            most = f"{limits.FIELD_TENSOR_CELLS} cells (FIELD_TENSOR_CELLS in paperwasp.limits)"
            return self._refuse(f"{node.describe()} of type {text}: its indexed dimensions have at most {most}", node)
        return tensor_field(type_)

    def _collection(self, name: str, inner: str, node: SchemaNode) -> DataType | None:
        match name:
            case "array":
                return self._array(inner, node)
            case "weightedset":
                return self._weighted_set(inner, node)
            case "map":
                return self._map(*_two(inner), node)
            case "reference":
                return reference_to(inner)
            case "annotationreference":
                if inner in self.annotations:
                    return AnnotationReferenceType(f"annotationreference<{inner}>", inner)
                message = f"unknown annotation {inner!r} of {node.describe()}{nearest(inner, self.annotations)}"
                return self._refuse(message, node)
        return self._refuse(f"unknown type {name}<…> of {node.describe()}{nearest(name, _COLLECTIONS)}", node)

    def _array(self, inner: str, node: SchemaNode) -> DataType | None:
        element = self._parse(inner, node)
        if isinstance(element, TensorFieldType) or element == PREDICATE:
            kind = "predicates" if element == PREDICATE else "tensors"
            return self._refuse(f"{node.describe()} cannot be a collection of {kind}", node)
        return array_of(element) if element else None

    def _weighted_set(self, inner: str, node: SchemaNode) -> DataType | None:
        key = self._parse(inner, node)
        if key is None:
            return None
        if inner not in _SET_KEYS:
            message = f"{node.describe()}: a weightedset of {inner} is not supported, only of "
            return self._refuse(message + ", ".join(sorted(_SET_KEYS)), node)
        return weighted_set_of(key)

    def _map(self, key_text: str, value_text: str, node: SchemaNode) -> DataType | None:
        if not value_text:
            return self._refuse(f"the map of {node.describe()} needs two types, as in map<string,int>", node)
        key, value = self._parse(key_text, node), self._parse(value_text, node)
        if key is None or value is None:
            return None
        if key not in _KEYS:
            return self._refuse(f"the key of {node.describe()} must be of a primitive type, and is {key}", node)
        if isinstance(value, TensorFieldType) or value == PREDICATE:
            return self._refuse(f"{node.describe()} cannot be a collection of {value}", node)
        return map_of(key, value)

    def _refuse(self, message: str, node: SchemaNode) -> DataType | None:
        self.problems.error(message, node.position)
        return None

    def _fits(self, name: str, inner: Iterable[DataType], position: Position | None) -> bool:
        """Return whether the type of these parts is within the limits; they are counted from the parts' own counts."""
        measures = [self._measure(type_) for type_ in inner]
        parts, depth = 1 + sum(m[0] for m in measures), 1 + max((m[1] for m in measures), default=0)
        if parts > limits.DATA_TYPE_PARTS or depth > limits.DATA_TYPE_DEPTH:
            self.problems.error(f"the type {name} is too large or nested too deep", position)
            return False
        self._sizes[name] = parts, depth
        return True

    def _measure(self, type_: DataType) -> tuple[int, int]:
        known = self._sizes.get(type_.name)
        if known is None:
            measures = [self._measure(inner) for inner in type_.inner]
            known = 1 + sum(m[0] for m in measures), 1 + max((m[1] for m in measures), default=0)
            self._sizes[type_.name] = known
        return known


def _two(text: str) -> tuple[str, str]:
    """The two types in `K,V`, where each may hold commas of its own."""
    depth = 0
    for at, character in enumerate(text):
        depth += (character in "<([") - (character in ">)]")
        if character == "," and not depth:
            return text[:at], text[at + 1 :]
    return text, ""


def innermost(type_: DataType) -> DataType:
    """The type of the single values in a field: that of an array's or weighted set's elements, or the type itself."""
    match type_:
        case ArrayType():
            return type_.element
        case WeightedSetType():
            return type_.key
    return type_


def is_text(type_: DataType) -> bool:
    return innermost(type_) == STRING


def is_number(type_: DataType) -> bool:
    """Return whether Vespa counts it among the numeric types, which bool is not."""
    return isinstance(innermost(type_), NumericType) and innermost(type_) != BOOL


def is_position(type_: DataType) -> bool:
    return type_ == POSITION or (isinstance(type_, ArrayType) and type_.element == POSITION)


def holds_struct(type_: DataType) -> bool:
    """Return whether it is a struct or map, or a collection of them."""
    return any(isinstance(inner, StructType | MapType) for inner in type_.walk())


def is_single(type_: DataType) -> bool:
    return not isinstance(type_, ArrayType | WeightedSetType | MapType | StructType)


def target_of(type_: DataType) -> str:
    """The document type that a reference refers to; empty for other types."""
    return type_.target if isinstance(type_, ReferenceType) else ""
