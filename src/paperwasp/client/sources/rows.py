"""Makes operations of the rows of a table: which column is the id, which field each of the others is."""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from itertools import count
from typing import Any, ClassVar, Final, NamedTuple

from msgspec import field

from paperwasp.base.patterns import compile_later
from paperwasp.base.records import PartlyCompared
from paperwasp.client.sources.operations import Kind, SourceOperation
from paperwasp.client.sources.values import (
    WHOLE_TYPES,
    Convert,
    TypeOf,
    converter,
    is_like_whole,
    json_of,
    made_whole,
    plain_value,
    shown,
    without_missing,
)
from paperwasp.document.ids import DocumentId
from paperwasp.errors import InvalidInput

DOCUMENT_ID: Final = "documentid"
"""The column in which `paperwasp visit` writes whole document ids."""
DEFAULT_IDS: Final = (DOCUMENT_ID, "id")
"""The columns that are the id where nobody says which is, the first one of them that is there."""
ROW_NUMBER: Final = "{#}"
"""In a template of ids: the number of the row among all rows that are read, where no column is named `#`."""
TIMES: Final = "times"
DATES: Final = "dates"
TIMES_OF_DAY: Final = "times of day"
DURATIONS: Final = "durations"
BYTES: Final = "bytes"
"""The meaning, by their types in Arrow, of columns whose values are plain numbers or texts in JSON."""
_NUMBER: Final = "#"
_ALL: Final = "*"
_AUTO: Final = "auto"
_PLACEHOLDER: Final = compile_later(r"\{([^{}]*)\}")
_WHOLE_ID: Final = "id:"
_ARGUMENTS: Final = {"--id": "id=", "--map": "columns=", "--schema": "schema="}


class RowOptions(PartlyCompared, frozen=True):
    """The options of the command that are about rows."""

    UNCOMPARED: ClassVar = frozenset({"numbers"})

    document_type: str | None = None
    namespace: str | None = None
    """None: the document type."""
    id: str | None = None
    """A column, or a text with columns in braces, or `{#}`. None: `documentid` or `id`, whichever there is."""
    fields: Mapping[str, str] = field(default_factory=dict)
    """Column → field; an empty field leaves the column out. Columns that are not named are fields of their name."""
    types: Mapping[str, str] = field(default_factory=dict)
    """Field → type, of texts; `*` for all others."""
    missing: Collection[str] = ()
    """Texts that stand for no value in fields of which `types` says something else than texts."""
    separator: str = ";"
    time_unit: str = "s"
    operation: Kind = "put"
    in_python: bool = False
    """Errors name the arguments of `Service.feed`, and not the options of the command."""
    numbers: Iterator[int] = field(default_factory=lambda: count(1))
    """Of the rows, over all files."""


class PlainColumns(NamedTuple):
    """Columns of which puts are made as they stand there, and how."""

    id: int
    """The place of the column with the ids, or the last parts of ids of the type and namespace."""
    document_type: str | None
    namespace: str
    places: tuple[int, ...]
    """Of the columns that are fields."""
    fields: tuple[str, ...]
    """The name of each field."""
    types: tuple[str | None, ...]
    """The type of each field, as `TypeOf` says it."""


class RowMapping:
    """Rows → operations."""

    def __init__(self, options: RowOptions, type_of: TypeOf | None = None) -> None:
        """`type_of` is asked for the types of fields in which a float may stand for a whole number, once for each."""
        self._options = options
        self._type_of = type_of or _not_known
        self._types: dict[tuple[str, str], str | None] = {}
        self._converters = {
            name: without_missing(converter(type_name, options.separator, options.time_unit), options.missing)
            for name, type_name in options.types.items()
        }
        self._default = self._converters.get(_ALL)
        self._plain_value = plain_value(options.time_unit)

    def check_columns(self, name: str, columns: Iterable[str]) -> None:
        """Refuses a table that lacks what the options name. Errors: InvalidInput that says which columns there are."""
        there = list(columns)
        refuse_twice(name, there)
        self._id_columns(there, name)
        fields = {self._options.fields.get(column, column) for column in there}
        unknown = [("--map", column) for column in self._options.fields if column not in there]
        unknown += [("--field-type", each) for each in self._options.types if each not in fields and each != _ALL]
        for option, column in unknown:
            raise InvalidInput(f"{name}: {self._option(option)} names '{column}', and {_columns(there)}")

    def note_meanings(self, meanings: Mapping[str, str]) -> None:
        """Column → what its type says of its values, for tables that know it: `TIMES` and the like."""

    def is_named(self, column: str) -> bool:
        """Whether the options say something of a column."""
        template = self._options.id
        return column in self._options.fields or (
            template is not None and (column == template or column in _PLACEHOLDER.findall(template))
        )

    def leaving_out(self, column: str) -> str:
        """The option that leaves a column out."""
        return f"columns={{'{column}': ''}}" if self._options.in_python else f"--map {column}="

    def _option(self, name: str) -> str:
        return _ARGUMENTS.get(name, name) if self._options.in_python else name

    def plain_columns(self, columns: Sequence[str]) -> PlainColumns | None:
        """The columns of puts whose ids are not composed and whose texts are not converted; None: they are."""
        options, plain = self._options, self._plain_id(columns)
        namespace = options.namespace or options.document_type or ""
        is_composed = plain not in columns or not _is_plain(namespace) or not _is_plain(options.document_type or "")
        if options.operation != "put" or self._converters or is_composed or plain is None:
            return None
        names = {
            place: options.fields.get(column, column)
            for place, column in enumerate(columns)
            if column != plain or column in options.fields
        }
        named = {place: name for place, name in names.items() if name}
        document_type = options.document_type
        named_type = DocumentId(namespace, document_type, "0") if document_type else None
        types = tuple(None if named_type is None else self._field_type(named_type, name) for name in named.values())
        return PlainColumns(columns.index(plain), document_type, namespace, tuple(named), tuple(named.values()), types)

    def operation(self, row: Mapping[str, Any], place: str) -> SourceOperation:
        """The operation of a row, column → value; what is None is left out. Errors: InvalidInput naming the place."""
        document_id = self._document_id(row, place)
        kind = self._options.operation
        if kind == "remove":
            return SourceOperation(kind, document_id, None, None, False, place)
        fields = self._fields(row, document_id, place)
        if kind == "update":
            fields = {name: {"assign": value} for name, value in fields.items()}
        try:
            text = json_of(fields, self._plain_value)
        except (TypeError, ValueError) as error:
            raise InvalidInput(f"{place}: cannot be written as JSON: {error}") from None
        return SourceOperation(kind, document_id, text, None, False, place)

    def _fields(self, row: Mapping[str, Any], document_id: DocumentId, place: str) -> dict[str, Any]:
        fields = {}
        names, left_out = self._options.fields, self._plain_id(row)
        for column, value in row.items():
            if value is None or (column == left_out and column not in names):
                continue
            name = names.get(column, column)
            if not name:
                continue
            if is_like_whole(value):
                value = made_whole(value, self._field_type(document_id, name))
            if isinstance(value, str) and (convert := self._converters.get(name, self._default)):
                value = _convert(convert, value, f"{place}, column '{column}'")
                if value is None:
                    continue
            elif isinstance(value, float) and self._options.types.get(name) in WHOLE_TYPES:
                raise InvalidInput(f"{place}, column '{column}': expected a whole number, found {value}")
            fields[name] = value
        return fields

    def _field_type(self, document_id: DocumentId, name: str) -> str | None:
        """Return the type of a field: by `TypeOf`, unless the options say it."""
        said = self._options.types.get(name, self._options.types.get(_ALL, _AUTO))
        if said != _AUTO:
            return said
        key = document_id.document_type, name
        if key not in self._types:
            self._types[key] = self._type_of(document_id, name)
        return self._types[key]

    def _plain_id(self, columns: Container[str]) -> str | None:
        """The column that is the id and nothing else; those of a template are fields, too."""
        template = self._options.id
        if template is None:
            return next((name for name in DEFAULT_IDS if name in columns), None)
        return None if _PLACEHOLDER.search(template) else template

    def _id_columns(self, there: Collection[str], place: str) -> list[str]:
        """The columns of which ids are made. Errors: InvalidInput where they are not there."""
        template = self._options.id
        if template is not None and (names := _PLACEHOLDER.findall(template)):
            needed = [name for name in names if name != _NUMBER or name in there]
        else:
            needed = [template or self._plain_id(there) or ""]
        for name in needed:
            if name not in there:
                option = self._option("--id")
                what = (
                    f"{option} names '{name}'" if name else f"say with {option} which column or template makes the id"
                )
                raise InvalidInput(f"{place}: {what}, and {_columns(there)}")
        return needed

    def _document_id(self, row: Mapping[str, Any], place: str) -> DocumentId:
        columns = self._id_columns(row, place)
        for column in columns:
            if row[column] is None or row[column] == "":
                raise InvalidInput(f"{place}: column '{column}' is empty, and the id is made of it")
        template = self._options.id
        if template is not None and "{" in template:
            number = next(self._options.numbers)
            text = _PLACEHOLDER.sub(lambda match: str(row.get(match[1], number)), template)
        else:
            text = str(row[columns[0]])
        if not text.startswith(_WHOLE_ID):
            text = f"{self._id_prefix(place)}{text}"
        try:
            return DocumentId.parse(text)
        except InvalidInput as error:
            raise InvalidInput(f"{place}: {error.message}") from None

    def _id_prefix(self, place: str) -> str:
        document_type = self._options.document_type
        if document_type is None:
            raise InvalidInput(f"{place}: say with {self._option('--schema')} of which document type the rows are")
        return f"id:{self._options.namespace or document_type}:{document_type}::"


def refuse_twice(name: str, columns: Sequence[str]) -> None:
    """Errors: InvalidInput for a table with two columns of one name."""
    twice = next((column for number, column in enumerate(columns) if column in columns[:number]), None)
    if twice is not None:
        raise InvalidInput(f"{name}: there are two columns '{twice}': rename one of them")


def columns_of_id(template: str) -> list[str]:
    """The columns of which ids are made by a template, or by the column that it is."""
    names = _PLACEHOLDER.findall(template)
    return [name for name in names if name != _NUMBER] if names else [template]


def _not_known(_document_id: DocumentId, _field: str) -> None:
    """The types of fields where nobody can be asked."""


def _is_plain(part: str) -> bool:
    """Whether a part of an id can stand there as it is."""
    return part.isascii() and part.isprintable() and ":" not in part


def _columns(there: Collection[str]) -> str:
    return f"the columns are {', '.join(there)}" if there else "there are no columns"


def _convert(convert: Convert, text: str, place: str) -> Any:
    try:
        return convert(text)
    except ValueError as error:
        raise InvalidInput(f"{place}: expected {error}, found {shown(text)}") from None
