"""Selections to functions: each node becomes a closure once, so that a document costs only what is asked of it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any, Final, Protocol

from msgspec import Struct

from paperwasp.base.patterns import compile_later
from paperwasp.document.converters import GeoPosition
from paperwasp.document.ids import DocumentId
from paperwasp.document.selection.tree import (
    And,
    Arithmetic,
    Comparison,
    ConditionNode,
    Constant,
    FieldValue,
    FunctionCall,
    IdPart,
    Literal,
    Not,
    Now,
    Or,
    Selection,
    SelectionNode,
    Step,
    TypeIs,
    ValueNode,
    Variable,
    nodes_of,
    step_text,
)
from paperwasp.document.selection.values import (
    AND,
    FALSE,
    FUNCTIONS,
    INVALID,
    NOT,
    OR,
    TRUE,
    Binding,
    Many,
    Operand,
    Results,
    Scalar,
    Special,
    Table,
    arithmetic,
    combine,
    comparison,
    join,
    negated_results,
    wrap_to_int64,
)
from paperwasp.document.types import (
    BOOL,
    INT,
    ArrayType,
    DataType,
    DocumentType,
    InnerStructType,
    MapType,
    NumericType,
    StructType,
    WeightedSetType,
    unroll,
)
from paperwasp.document.updates import Index, Key, Member, Value
from paperwasp.errors import LanguageError
from paperwasp.text.parsing.tokens import did_you_mean, position_of

# A document as selections see it.


class Subject(Protocol):
    """A document as a matcher sees it. A matcher reads no more of it than the selection needs to decide.

    One object may stand for several documents in turn: between two calls of a matcher nothing of it is kept.
    """

    @property
    def id(self) -> DocumentId: ...

    def is_a(self, type_name: str) -> bool:
        """Return whether the document is of this type or of one that inherits it."""
        ...

    def field(self, name: str) -> Value | None:
        """The typed value of a field, or of an imported one; None where there is none."""
        ...

    def data_type(self, name: str) -> DataType | None:
        """The type of a field. Asked only for values with others in them, which do not say what they are."""
        ...


class PlainSubject(Struct, frozen=True):
    """A document as a dict of typed values."""

    id: DocumentId
    fields: Mapping[str, Value]
    type: DocumentType | None = None
    """Where it is not known, a dict is a map."""

    def is_a(self, type_name: str) -> bool:
        return type_name == self.id.document_type or (self.type is not None and type_name in self.type.inherits)

    def field(self, name: str) -> Value | None:
        return self.fields.get(name)

    def data_type(self, name: str) -> DataType | None:
        return self.type.fields.get(name) if self.type is not None else None


# From a field's value to what a path leads to in it.
#
# A path without an end of its own goes on into all that is there: the elements of an array, the keys of a map or
# weighted set, the fields of a struct. Steps pass through arrays: `structs.name` are the names of all structs of an
# array.
#
# Vespa: https://docs.vespa.ai/en/reference/schemas/document-field-path.html


_SCALARS: Final = (str, int, float)
_Bound = dict[str, tuple[str, Any]]
"""Variable → what kind of thing it stands for, `index` or the kind of key, and that."""


class _Mismatch(Exception):
    """The path does not fit the value; a variable stands for a key and is used as an index."""


def operand_of(value: Value | None, type_: DataType | None, steps: tuple[Step, ...]) -> Operand:
    """The value that a path leads to: null where nothing is there, invalid where the path cannot lead anywhere.

    `type_` is the type of the field; None where it is not known.
    """
    if value is None:
        return None
    found: list[tuple[Binding, Scalar]] = []
    try:
        _Walk(steps, found).step(value, type_, 0, {})
    except _Mismatch:
        return Special.INVALID
    if not found:
        return None
    if len(found) == 1 and not found[0][0]:
        return found[0][1]
    return Many(tuple(found))


def key_of(text: str, kind: type) -> Any:
    """The key that a path's text stands for among keys of this kind; None for none."""
    if kind is str:
        return text
    form = _KEY_FORMS.get(kind)
    if form is None or not form.fullmatch(text):
        return None
    return text.lower() == "true" if kind is bool else kind(text)


_KEY_FORMS: Final[Mapping[type, re.Pattern[str]]] = {
    bool: compile_later("true|false", re.IGNORECASE),
    int: compile_later("[+-]?[0-9]{1,20}"),
    float: compile_later(r"[+-]?[0-9]{1,400}(\.[0-9]{0,400})?([eE][+-]?[0-9]{1,5})?"),
}
"""The forms in which keys that are not strings are written."""


class _Walk:
    """A walk along `steps` that leaves what it finds in `found`."""

    def __init__(self, steps: tuple[Step, ...], found: list[tuple[Binding, Scalar]]) -> None:
        self._steps = steps
        self._found = found

    def step(self, value: Any, type_: DataType | None, at: int, bound: _Bound) -> None:
        """From `value`, by the step `at` and those after it."""
        if at == len(self._steps):
            self._all(value, type_, tuple(sorted(bound.items())) if bound else ())
        elif isinstance(value, list):
            self._array(value, type_, at, bound)
        elif isinstance(value, GeoPosition):
            self._struct(value._asdict(), None, at, bound)
        elif isinstance(value, dict):
            if isinstance(type_, StructType):
                self._struct(value, type_, at, bound)
            else:
                self._map(value, type_, at, bound)
        else:
            raise _Mismatch

    def _array(self, value: list[Any], type_: DataType | None, at: int, bound: _Bound) -> None:
        element = type_.element if isinstance(type_, ArrayType) else None
        match self._steps[at]:
            case Index(index):
                if index < len(value):
                    self.step(value[index], element, at + 1, bound)
            case Variable(name) if name in bound:
                kind, index = bound[name]
                if kind != "index":
                    raise _Mismatch
                if index < len(value):
                    self.step(value[index], element, at + 1, bound)
            case Variable(name):
                for index, item in enumerate(value):
                    self.step(item, element, at + 1, {**bound, name: ("index", index)})
            case _:
                for item in value:
                    self.step(item, element, at, bound)

    def _map(self, value: dict[Any, Any], type_: DataType | None, at: int, bound: _Bound) -> None:
        inner = type_.value if isinstance(type_, MapType) else None
        match self._steps[at]:
            case Key(text):
                key = key_of(text, type(next(iter(value)))) if value else None
                if key is not None and key in value:
                    self.step(value[key], inner, at + 1, bound)
            case Variable(name) if name in bound:
                kind, key = bound[name]
                if kind == "index":
                    raise _Mismatch
                if key in value and type(next(iter(value))).__name__ == kind:
                    self.step(value[key], inner, at + 1, bound)
            case Variable(name):
                for key, item in value.items():
                    self.step(item, inner, at + 1, {**bound, name: (type(key).__name__, key)})
            case Member("key"):
                for key in value:
                    self.step(key, None, at + 1, bound)
            case Member("value"):
                for item in value.values():
                    self.step(item, inner, at + 1, bound)
            case _:
                raise _Mismatch

    def _struct(self, value: Mapping[str, Any], type_: StructType | None, at: int, bound: _Bound) -> None:
        step = self._steps[at]
        if not isinstance(step, Member):
            raise _Mismatch
        member = value.get(step.name)
        if member is not None:
            self.step(member, _member_type(member, type_, step.name), at + 1, bound)

    def _all(self, value: Any, type_: DataType | None, binding: Binding) -> None:
        """All that is in the value."""
        if isinstance(value, bool):
            self._found.append((binding, int(value)))
        elif isinstance(value, _SCALARS):
            self._found.append((binding, value))
        elif isinstance(value, list):
            element = type_.element if isinstance(type_, ArrayType) else None
            for item in value:
                self._all(item, element, binding)
        elif isinstance(value, GeoPosition):
            self._found += [(binding, value.x), (binding, value.y)]
        elif isinstance(value, dict):
            if isinstance(type_, StructType):
                for name, member in value.items():
                    self._all(member, _member_type(member, type_, name), binding)
            else:
                for key in value:
                    self._all(key, None, binding)
        else:
            self._found.append((binding, Special.OPAQUE))


def _member_type(member: Any, type_: StructType | None, name: str) -> DataType | None:
    """The type of a struct's field; what is one value needs none."""
    if isinstance(member, _SCALARS) or type_ is None:
        return None
    found = type_.field(name)
    return None if found is None else unroll(found)


def path_problem(type_: DataType, steps: tuple[Step, ...]) -> str:
    """The problem with a path into values of this type, as a message; empty where there is none."""
    for step in steps:
        while isinstance(type_, ArrayType) and isinstance(step, Member):
            type_ = type_.element
        match type_, step:
            case ArrayType(), Index() | Variable():
                type_ = type_.element
            case MapType() | WeightedSetType(), Key(text):
                if problem := _key_problem(type_.key, text):
                    return problem
                type_ = _value_type(type_)
            case MapType() | WeightedSetType(), Variable() | Member("value"):
                type_ = _value_type(type_)
            case MapType() | WeightedSetType(), Member("key"):
                type_ = type_.key
            case StructType(), Member(name):
                found = type_.field(name)
                if found is None:
                    return f"No field '{name}' in struct '{type_}', which has: {', '.join(dict(type_.fields))}"
                type_ = unroll(found)
            case DataType("position"), Member("x" | "y"):
                type_ = INT
            case _:
                return f"a value of type {type_} has nothing at '{step_text(step)}'"
        if isinstance(type_, InnerStructType):
            type_ = type_.structs[type_.name]
    return ""


def _value_type(type_: MapType | WeightedSetType) -> DataType:
    return type_.value if isinstance(type_, MapType) else INT


def _key_problem(type_: DataType, text: str) -> str:
    kind: type = str
    if isinstance(type_, NumericType):
        kind = bool if type_ == BOOL else int if type_.low is not None else float
    return f"'{text}' is no key of type {type_}" if key_of(text, kind) is None else ""


Matcher = Callable[[Subject, int], bool | None]
"""Document, time in microseconds since 1970 → whether it is selected; None where that is invalid."""

_Value = Callable[[Subject, int], Operand]
_Condition = Callable[[Subject, int], Results]

_VERDICTS: Final = {TRUE: True, FALSE: False, INVALID: None}
_MICROSECONDS: Final = 1_000_000
_BUCKET_BITS: Final = 58
_LOCATION_MASK: Final = (1 << 32) - 1


def matcher_of(selection: Selection) -> Matcher:
    """The function that decides. It is total, and depends on nothing but its arguments."""
    root = selection.root
    if isinstance(root, Constant):
        verdict = root.value
        return lambda subject, now_us: verdict
    condition = _condition(root)
    return lambda subject, now_us: _VERDICTS[combine(condition(subject, now_us))]


def _condition(node: ConditionNode) -> _Condition:
    match node:
        case Constant(value=value):
            truth = TRUE if value else FALSE
            return lambda subject, now_us: truth
        case TypeIs(document_type=name):
            return lambda subject, now_us: TRUE if subject.id.document_type == name else FALSE
        case Comparison():
            return _comparison(node)
        case Not(operand=operand):
            inner = _condition(operand)
            return lambda subject, now_us: negated_results(inner(subject, now_us))
        case And(operands=operands):
            return _branch(operands, AND, FALSE)
        case Or(operands=operands):
            return _branch(operands, OR, TRUE)
    raise AssertionError(node)


def _branch(operands: tuple[ConditionNode, ...], table: Table, decided: int) -> _Condition:
    """Combines the results of all operands by `table`, in order, until one of them has decided.

    Where there are variables all are evaluated: one whose bindings agree with no others' changes their results.
    """
    first, *others = [_condition(operand) for operand in operands]
    decided = 0 if any(map(_binds, operands)) else decided

    def evaluate(subject: Subject, now_us: int) -> Results:
        found = first(subject, now_us)
        for other in others:
            if found == decided:
                return found
            found = join(found, other(subject, now_us), table)
        return found

    return evaluate


def _binds(node: SelectionNode) -> bool:
    return node.binds if isinstance(node, FieldValue) else any(map(_binds, node.inner))


def _comparison(node: Comparison) -> _Condition:
    if IdPart("bucket") in (node.left, node.right):
        return _in_bucket(node)
    left, right = _value(node.left), _value(node.right)
    match node:
        case Comparison(left=IdPart() as part, right=Literal(value=None)):
            left = _id_or_null(part)
        case Comparison(left=Literal(value=None), right=IdPart() as part):
            right = _id_or_null(part)
    compare = comparison(node.operator)
    return lambda subject, now_us: compare(left(subject, now_us), right(subject, now_us))


def _value(node: ValueNode) -> _Value:
    match node:
        case Literal():
            value = int(node.value) if isinstance(node.value, bool) else node.value
            return lambda subject, now_us: value
        case Now():
            return lambda subject, now_us: now_us // _MICROSECONDS
        case IdPart(part=part):
            read = _ID_PARTS[part]
            return lambda subject, now_us: read(subject.id)
        case FieldValue():
            return _field(node)
        case FunctionCall(function=name, operand=operand):
            function, inner = FUNCTIONS[name], _value(operand)
            return lambda subject, now_us: function(inner(subject, now_us))
        case Arithmetic(operator=operator, left=left, right=right):
            calculate, one, other = arithmetic(operator), _value(left), _value(right)
            return lambda subject, now_us: calculate(one(subject, now_us), other(subject, now_us))
    raise AssertionError(node)


def _field(node: FieldValue) -> _Value:
    type_name, name, steps = node.document_type, node.name, node.steps

    def read(subject: Subject, now_us: int) -> Operand:
        if not subject.is_a(type_name):
            return Special.INVALID
        value = subject.field(name)
        kind = type(value)
        if not steps and (kind is str or kind is int or kind is float):
            return value
        return operand_of(value, subject.data_type(name) if kind is list or kind is dict else None, steps)

    return read


def _id_or_null(node: IdPart) -> _Value:
    """As Vespa's page says, an id without number is null where it is compared with null."""
    read = _ID_PARTS[node.part]

    def read_or_null(subject: Subject, now_us: int) -> Operand:
        found = read(subject.id)
        return None if found is Special.INVALID else found

    return read_or_null


_ID_PARTS: Final[dict[str, Callable[[DocumentId], Operand]]] = {
    "": lambda id_: id_.text,
    "scheme": lambda id_: "id",
    "namespace": lambda id_: id_.namespace,
    "type": lambda id_: id_.document_type,
    "specific": lambda id_: id_.user_specified,
    "user": lambda id_: Special.INVALID if id_.number is None else wrap_to_int64(id_.number),
    "group": lambda id_: Special.INVALID if id_.group is None else id_.group,
    "gid": lambda id_: f"gid(0x{id_.gid.hex()})",
    "bucket": lambda id_: Special.INVALID,
}
"""The bucket is compared by `_in_bucket` alone."""


def _in_bucket(node: Comparison) -> _Condition:
    """Compile a test for a bucket: 6 bits say how many of the low bits of location and gid must be the same."""
    read = _value(node.right if node.left == IdPart("bucket") else node.left)
    if node.operator not in ("==", "!=", "="):
        return lambda subject, now_us: INVALID
    negates = node.operator == "!="

    def evaluate(subject: Subject, now_us: int) -> Results:
        bucket = read(subject, now_us)
        if not isinstance(bucket, int):
            return INVALID
        gid = subject.id.gid
        own = int.from_bytes(gid[:4], "little") | (int.from_bytes(gid[4:], "little") & ~_LOCATION_MASK)
        bits = (bucket >> _BUCKET_BITS) & 0x3F
        mask = (1 << bits) - 1
        inside = 0 < bits <= _BUCKET_BITS and (own & mask) == (bucket & mask)
        truth = TRUE if inside else FALSE
        return NOT[truth] if negates else truth

    return evaluate


# Whether a selection fits the document types that it is for.
#
# What it may say depends on what it is for:
#
#     condition   anything but imported fields: they are another document's, which may change at any time
#     visiting    anything
#     cluster     anything; that of a document names only its own type, that of all documents of a cluster names none


Imported = Mapping[str, Mapping[str, DataType]]
"""Document type → its imported fields by name, with their types."""

_NONE_IMPORTED: Final[Imported] = {}
_COMPLEX: Final = (ArrayType, MapType, StructType, WeightedSetType)


class Purpose(Enum):
    """The use of a selection, which decides what may be in it."""

    CONDITION = "condition"
    VISIT = "visiting"
    CLUSTER = "cluster"


def check_selection(
    selection: Selection,
    types: Mapping[str, DocumentType],
    imported: Imported = _NONE_IMPORTED,
    purpose: Purpose = Purpose.VISIT,
) -> None:
    """Raises LanguageError, with the place, where the selection names what does not exist or may not be named."""
    for node in nodes_of(selection):
        if isinstance(node, TypeIs | FieldValue) and (problem := _problem(node, types, imported, purpose)):
            raise LanguageError(problem, position_of(selection.text, node.start, selection.source))


def check_cluster_selection(selection: Selection, document_type: str = "") -> None:
    """That the selection of a document of a cluster names no other type, and that of all documents none at all.

    Errors: LanguageError with the place.
    """
    for node in nodes_of(selection):
        if not isinstance(node, TypeIs | FieldValue) or node.document_type == document_type:
            continue
        found = f"(found reference to type '{node.document_type}')"
        if document_type:
            problem = (
                f"Selection for document type '{document_type}' can not contain references to other document types"
            )
        else:
            problem = "Document type references are not allowed in global <documents> tag selection attribute"
        raise LanguageError(f"{problem} {found}", position_of(selection.text, node.start, selection.source))


def _problem(node: SelectionNode, types: Mapping[str, DocumentType], imported: Imported, purpose: Purpose) -> str:
    assert isinstance(node, TypeIs | FieldValue)
    document_type = types.get(node.document_type)
    if document_type is None:
        return f"Document type '{node.document_type}' not found{did_you_mean(node.document_type, types)}"
    if isinstance(node, TypeIs):
        return ""
    return _field_problem(node, document_type, imported.get(node.document_type, {}), purpose)


def _field_problem(
    node: FieldValue, document_type: DocumentType, imported: Mapping[str, DataType], purpose: Purpose
) -> str:
    type_ = document_type.fields.get(node.name)
    if type_ is not None:
        problem = path_problem(type_, node.steps)
        return f"'{node}': {problem}" if problem else ""
    if purpose is Purpose.CONDITION:
        found = f"Condition field '{node.name}' could not be found, or is an imported field"
        known = did_you_mean(node.name, document_type.fields)
        return f"{found}. Imported fields are not supported in conditional mutations{known}"
    if node.name not in imported:
        known = did_you_mean(node.name, [*document_type.fields, *imported])
        return f"No field '{node.name}' in document type '{document_type.name}'{known}"
    if node.steps or isinstance(imported[node.name], _COMPLEX):
        return f"'{node}': an imported field can be named here only where it is a single value, and without a path"
    return ""
