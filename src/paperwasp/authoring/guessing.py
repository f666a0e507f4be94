"""Guesses for `init`: which type the values of a column have, and what the column is for: found by words, filtered by,
near by vectors.

Texts of CSV are what they look like if all of the sample look so: a column of digits is of numbers, one with a single
word is of texts, unless the word stands for no value, like `n/a`. Numbers with leading zeros are texts: postal codes
and article numbers would lose them.
"""

from __future__ import annotations

import datetime
import unicodedata
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from decimal import Decimal
from enum import Enum
from itertools import islice
from numbers import Integral, Real
from typing import Any, Final

import orjson
from msgspec import Struct, field

from paperwasp.base.patterns import compile_later
from paperwasp.client.sources.operations import BadInput, SourceOperation
from paperwasp.client.sources.read import ReadOptions, read_file
from paperwasp.client.sources.rows import (
    BYTES,
    DATES,
    DURATIONS,
    ROW_NUMBER,
    TIMES,
    TIMES_OF_DAY,
    RowMapping,
    RowOptions,
    columns_of_id,
    refuse_twice,
)
from paperwasp.client.sources.values import DATE_FORM, GUESSED_FORMS, converter
from paperwasp.client.terminal import counted
from paperwasp.document.ids import DocumentId
from paperwasp.errors import InvalidInput
from paperwasp.schema.data_types import RESERVED_NAMES

# The first rows of a file, each a mapping of columns to values, by the readers that feed it.


SAMPLED_ROWS: Final = 10_000
_ANY_ID: Final = DocumentId.parse("id:sample:sample::row")


class Sample(Struct, frozen=True):
    """Rows of a file."""

    columns: tuple[str, ...]
    rows: tuple[Mapping[str, Any], ...]
    meanings: Mapping[str, str] = field(default_factory=dict)
    """Column → what the type of a table says of its values (`RowMapping.note_meanings`)."""

    def values(self, column: str) -> list[Any]:
        """The values of a column, without rows that have none."""
        return [value for row in self.rows if (value := row.get(column)) not in (None, "")]


def read_sample(path: str, options: ReadOptions) -> Sample:
    """The first rows of a file of rows. Errors: InvalidInput for a file that is empty, damaged, or has operations."""
    rows = _Rows()
    unreadable = ""
    for item in islice(read_file(path, options, rows=rows), SAMPLED_ROWS):
        if isinstance(item, BadInput):
            if item.is_end:
                raise InvalidInput(item.message)
            unreadable = unreadable or item.message
    if not rows.found:
        raise InvalidInput(unreadable or f"'{path}' has no rows, so nothing can be said of its columns")
    if all("fields" in row and isinstance(row.get("fields"), Mapping) for row in rows.found[:10]):
        raise InvalidInput(
            f"'{path}' has operations of Vespa's feed format: the application that it is for has a schema"
        )
    columns = dict.fromkeys(name for row in rows.found for name in row)
    return Sample(tuple(columns), tuple(rows.found), rows.meanings)


class _Rows(RowMapping):
    """Keeps rows as they come, instead of making operations of them."""

    def __init__(self) -> None:
        super().__init__(RowOptions(document_type="sample"))
        self.found: list[Mapping[str, Any]] = []
        self.meanings: Mapping[str, str] = {}

    def check_columns(self, name: str, columns: Iterable[str]) -> None:
        refuse_twice(name, list(columns))

    def note_meanings(self, meanings: Mapping[str, str]) -> None:
        self.meanings = {column: meaning for column, meaning in meanings.items() if meaning}

    def operation(self, row: Mapping[str, Any], place: str) -> SourceOperation:
        self.found.append({column: _plain(value) for column, value in row.items()})
        return SourceOperation("put", _ANY_ID, b"{}", None, False, place)


def _plain(value: Any) -> Any:
    """A value of Python's own types: columns of Arrow give arrays of NumPy."""
    return value.tolist() if hasattr(value, "tolist") else value


# Objects in the rows of a sample: structs where their names are few and the same, maps where they are not.
#
# A single struct is shown. Of lists of structs and of maps, single values within are attributes, so that `sameElement`
# filters by them; attributes of single structs are there in streaming search only.


_MEMBERS: Final = 32
"""Objects with more names altogether are maps."""
_MEMBER: Final = compile_later(r"[a-zA-Z][a-zA-Z0-9_]*")
_DEEPEST: Final = 4
_LONG: Final = range(-(2**63), 2**63)


class Objects(Struct, frozen=True):
    """The type of a field of objects, and what it needs."""

    type: str
    why: str
    structs: tuple[tuple[str, tuple[tuple[str, str], ...]], ...] = ()
    """Of each struct its name, and the names and types of its members; those of which others are made come first."""
    filtered: tuple[str, ...] = ()
    """The parts that can be attributes."""


def objects_of(values: Sequence[Any], name: str) -> Objects | None:
    """Return the type of objects, or of lists of them; structs are named by `name`. None: no type holds them all."""
    if all(isinstance(value, Mapping) for value in values):
        return _struct(values, name) or _map(values)
    if not all(isinstance(value, list | tuple) for value in values):
        return None
    elements = [element for value in values for element in value]
    if not elements or not all(isinstance(element, Mapping) for element in elements):
        return None
    found = _struct(elements, name)
    if found is None:
        return None
    parts = tuple(part for part, type_ in found.structs[-1][1] if type_ in _SINGLE)
    return Objects(f"array<{found.type}>", f"lists of {found.why}", found.structs, parts)


def _struct(values: Sequence[Mapping[str, Any]], name: str, depth: int = 1) -> Objects | None:
    members = dict.fromkeys(str(member) for value in values for member in value)
    if not members or len(members) > _MEMBERS or depth > _DEEPEST:
        return None
    if not all(_MEMBER.fullmatch(member) and member not in RESERVED_NAMES for member in members):
        return None
    structs: list[tuple[str, tuple[tuple[str, str], ...]]] = []
    types: list[tuple[str, str]] = []
    for member in members:
        given = [value[member] for value in values if value.get(member) is not None]
        type_ = _type_of(given)
        if type_ is None and given and all(isinstance(value, Mapping) for value in given):
            inner = _struct(given, f"{name}__{member}", depth + 1)
            if inner is not None:
                structs += inner.structs
                type_ = inner.type
        if type_ is None:
            return None
        types.append((member, type_))
    if len({each for each, _ in structs} | {name}) <= len(structs):
        return None
    said = ", ".join(list(members)[:5]) + (", …" if len(members) > 5 else "")
    return Objects(name, f"objects with {said}", (*structs, (name, tuple(types))))


def _map(values: Sequence[Mapping[str, Any]]) -> Objects | None:
    type_ = _type_of([inner for value in values for inner in value.values() if inner is not None])
    if type_ not in _SINGLE:
        return None
    return Objects(f"map<string, {type_}>", "objects of many names", (), ("key", "value"))


_SINGLE: Final = ("bool", "long", "double", "string")


def _type_of(values: Sequence[Any]) -> str | None:
    """The type of values that are no objects; of none at all it is a text."""
    if all(isinstance(value, bool) for value in values):
        return "bool" if values else "string"
    if any(isinstance(value, bool) for value in values):
        return None
    if all(isinstance(value, str) for value in values):
        return "string"
    if all(isinstance(value, Integral) and int(value) in _LONG for value in values):
        return "long"
    if all(isinstance(value, Real) for value in values):
        return "double"
    if not all(isinstance(value, list | tuple) or hasattr(value, "tolist") for value in values):
        return None
    inner = _type_of([each for value in values for each in value if each is not None])
    return f"array<{inner}>" if inner in _SINGLE else None


_VECTOR_LENGTH: Final = 8
"""Lists of numbers that are all of one length, and not shorter, are vectors."""
_PLAIN_TYPES: Final = ("bool", "int", "long", "double")
_CATEGORY_SHARE: Final = 0.5
_CATEGORY_WORDS: Final = 3
"""Texts of at most this many words on average, which come twice on average, are categories."""
_PROSE_WORDS: Final = 1.5
_LIST_PART_CHARACTERS: Final = 40
_INT_SAFE: Final = 2**30
"""Whole numbers up to this are `int`, so that there is room for twice as large ones; others are `long`."""
_ID_NAMES: Final = ("documentid", "id", "_id", "docid", "doc_id", "uuid", "guid", "key", "sku", "isbn", "asin", "doi")
_MISSING: Final = frozenset(("n/a", "#n/a", "n.a.", "na", "null", "none", "nil", "nan", "-", "--", "?"))
"""Words that stand for no value among values of another type, in small letters."""
_TITLE_NAMES: Final = ("title", "name", "headline", "subject", "heading", "label", "product", "question")
_NOT_IN_NAMES: Final = compile_later(r"[^a-z0-9]+")
_LEADING_ZERO: Final = compile_later(r"[+-]?0[0-9]")
_TIME: Final = compile_later(r"[0-9]{4}-[0-9]{2}-[0-9]{2}(?:[T ][0-9:.]+(?:Z|[+-][0-9:]+)?)?")
_URL: Final = compile_later(r"https?://\S+")
_RESERVED: Final = RESERVED_NAMES | {"all", "documentid", "id", "relevance", "source", "sddocname", "rank", "position"}


class Use(Enum):
    """The purpose of a field."""

    TEXT = "found by its words"
    CATEGORY = "filtered and grouped by"
    NUMBER = "filtered, sorted and grouped by"
    VECTOR = "searched for what is near"
    PARTS = "shown, and filtered by its parts"
    SHOWN = "shown"
    LEFT_OUT = "left out"


_MEANINGS: Final[Mapping[str, tuple[str, Use, str]]] = {
    TIMES: ("long", Use.NUMBER, "times, as seconds since 1970"),
    DATES: ("long", Use.NUMBER, "dates, as seconds since 1970"),
    TIMES_OF_DAY: ("int", Use.NUMBER, "times of day, as seconds since midnight"),
    DURATIONS: ("long", Use.NUMBER, "durations, in seconds"),
    BYTES: ("raw", Use.SHOWN, "bytes, in base64"),
}
"""Type, use and why of columns whose type in the table says what they are."""


class Column(Struct, frozen=True):
    """A column of the file, and the field that it becomes."""

    name: str
    field: str
    type: str
    """Of the field, in the schema language."""
    use: Use
    said_type: str
    """For `--field-type`, where texts of the file stand for something else; empty: they do not."""
    why: str
    """The values that speak for the type, for a comment."""
    example: str
    """One of the values."""
    missing: tuple[str, ...] = ()
    """Texts of the column that stand for no value."""
    objects: Objects | None = None
    """Of a column of objects."""


class Guess(Struct, frozen=True):
    """The fields of the rows of a file, as they are guessed."""

    columns: tuple[Column, ...]
    id: str
    """The column with the ids; `ROW_NUMBER` where no column can be."""
    title: Column | None
    """The text that a person would know a row by."""

    def of(self, *uses: Use) -> list[Column]:
        """The columns with one of these uses."""
        return [column for column in self.columns if column.use in uses]


def guess(sample: Sample, id_column: str | None) -> Guess:
    """Guess the fields of the rows of a sample. Errors: InvalidInput where the column named as the id is not there."""
    identity = _id_column(sample, id_column)
    taken: set[str] = set()
    named = [name for name in sample.columns if name != identity or _is_prose(sample, name)]
    columns = tuple(_column(sample, name, taken) for name in named)
    texts = [column for column in columns if column.use is Use.TEXT]
    return Guess(columns, identity, _title(texts))


def field_name(column: str, taken: Collection[str] = ()) -> str:
    """The name of a field for a column: small letters, digits and underscores, and no other field's."""
    plain = unicodedata.normalize("NFKD", column.casefold())  # é is an e and an accent
    bare = "".join(character for character in plain if not unicodedata.combining(character))
    name = _NOT_IN_NAMES.sub("_", bare).strip("_") or "field"
    if not name[0].isalpha() or name in _RESERVED:
        name = f"field_{name}"
    number, base = 2, name
    while name in taken:
        name = f"{base}_{number}"
        number += 1
    return name


def _id_column(sample: Sample, said: str | None) -> str:
    if said is not None:
        if any(column not in sample.columns for column in columns_of_id(said)):
            raise InvalidInput(f"--id names '{said}', and the columns are {', '.join(sample.columns)}")
        return said
    candidates = [name for name in sample.columns if _is_unique(sample, name)]
    named = [name for key in _ID_NAMES for name in candidates if field_name(name) in (key, f"field_{key}")]
    ending = [name for name in candidates if name.lower().endswith(("id", "_key", "_no", "code"))]
    found = next(iter((*named, *ending, *(name for name in candidates if _is_like_id(sample, name)))), None)
    return ROW_NUMBER if found is None else found


def _is_like_id(sample: Sample, column: str) -> bool:
    """Whether different values are texts or whole numbers, and not times, prices or words for what is missing."""
    found = _column(sample, column, set())
    if column in sample.meanings:
        return False
    return not found.missing and (found.type in ("string", "int", "long")) and not _is_time(found.said_type)


def _is_prose(sample: Sample, column: str) -> bool:
    """Whether ids are texts of several words, which are worth finding and showing."""
    texts = [str(value) for value in sample.values(column)]
    return sum(len(text.split()) for text in texts) > len(texts) * _PROSE_WORDS


def _is_unique(sample: Sample, column: str) -> bool:
    """Whether each row has a value, a text or a whole number, that no other row has."""
    values = [row.get(column) for row in sample.rows]
    if not all(isinstance(value, str | int) and not isinstance(value, bool) and value != "" for value in values):
        return False
    return len({str(value) for value in values}) == len(values) and all(len(str(value)) <= 200 for value in values)


def _column(sample: Sample, name: str, taken: set[str]) -> Column:
    field = field_name(name, taken)
    taken.add(field)
    values = sample.values(name)
    example = _shown(values[0]) if values else ""
    if not values:
        return Column(name, field, "string", Use.LEFT_OUT, "", "no row of the sample has a value", example)
    if (meaning := sample.meanings.get(name)) is not None:
        type_, use, why = _MEANINGS[meaning]
        return Column(name, field, type_, use, "", why, example)
    for look in (_typed, _listed, _with_missing, _as_text):
        found = look(values)
        if found is not None:
            type_, use, said_type, why = found
            missing = _missing_of(values) if look is _with_missing else ()
            return Column(name, field, type_, use, said_type, why, example, missing)
    objects = objects_of(values, f"{field}_type")
    if objects is None:
        return Column(name, field, "string", Use.LEFT_OUT, "", "objects of which no struct or map is made", example)
    use = Use.PARTS if objects.filtered else Use.SHOWN
    return Column(name, field, objects.type, use, "", objects.why, example, objects=objects)


Found = tuple[str, Use, str, str]
"""Type, use, what --field-type says, why."""


def _typed(values: Sequence[Any]) -> Found | None:
    """Guess the type of values that are not texts, as JSON and Parquet have them."""
    if all(isinstance(value, bool) for value in values):
        return "bool", Use.CATEGORY, "", "true and false"
    if any(isinstance(value, str | bool | list | dict) for value in values):
        return None
    if all(isinstance(value, datetime.date) for value in values):
        return "long", Use.NUMBER, "", "times, as seconds since 1970"
    if all(isinstance(value, int | float | Decimal) for value in values):
        if all(isinstance(value, int) or float(value).is_integer() for value in values):
            are_floats = any(isinstance(value, float) for value in values)
            return _whole([int(value) for value in values], "long" if are_floats else "")
        return "double", Use.NUMBER, "", "numbers"
    return None


def _listed(values: Sequence[Any]) -> Found | None:
    """Guess the type of lists: vectors, or arrays."""
    if not all(isinstance(value, list | tuple) for value in values):
        return None
    elements = [element for value in values for element in value]
    if elements and all(isinstance(element, int | float) and not isinstance(element, bool) for element in elements):
        lengths = {len(value) for value in values}
        if len(lengths) == 1 and (length := lengths.pop()) >= _VECTOR_LENGTH:
            return f"tensor<float>(x[{length}])", Use.VECTOR, "", f"lists of {length} numbers each"
        whole = _whole(elements, "") if all(isinstance(element, int) for element in elements) else None
        if whole is not None:
            return f"array<{whole[0]}>", Use.NUMBER, "", "lists of whole numbers"
        return "array<double>", Use.NUMBER, "", "lists of numbers"
    if elements and all(isinstance(element, str) for element in elements):
        return "array<string>", Use.CATEGORY, "", "lists of texts"
    return None


def _missing_of(values: Sequence[Any]) -> tuple[str, ...]:
    """The texts that stand for no value, if they stand among others."""
    stripped = {value.strip() for value in values if isinstance(value, str)}
    return tuple(sorted(text for text in stripped if text.casefold() in _MISSING))


def _with_missing(values: Sequence[Any]) -> Found | None:
    """Guess the type of values without those that stand for none, where it is another than texts."""
    missing = _missing_of(values)
    present = [value for value in values if not (isinstance(value, str) and value.strip() in missing)]
    if not missing or not present or (found := _as_text(present)) is None:
        return None
    type_, use, said_type, why = found
    is_plain = said_type in _PLAIN_TYPES or _is_time(said_type)
    return (type_, use, said_type, f"{why}, and {', '.join(missing)}") if is_plain else None


def _as_text(values: Sequence[Any]) -> Found | None:
    """Guess the type that texts stand for; values of several kinds are taken as texts."""
    if any(isinstance(value, list | tuple | dict) for value in values):
        return None
    texts = [value if isinstance(value, str) else orjson.dumps(value, default=str).decode() for value in values]
    for look in (_boolean_texts, _number_texts, _time_texts, _list_texts):
        if (found := look(texts)) is not None:
            return found
    if all(_URL.fullmatch(text) for text in texts):
        return "string", Use.SHOWN, "", "addresses"
    words = sum(len(text.split()) for text in texts) / len(texts)
    different = len(set(texts)) / len(texts)
    if words <= _CATEGORY_WORDS and different <= _CATEGORY_SHARE:
        count = len(set(texts))
        what = "the same text" if count == 1 else f"{count} different texts"
        return "string", Use.CATEGORY, "", f"{what} in {counted(len(texts), 'row')}"
    return "string", Use.TEXT, "", f"texts of {words:.0f} words" if words >= 1.5 else "texts"


def _boolean_texts(texts: Sequence[str]) -> Found | None:
    if {text.strip().lower() for text in texts} <= {"true", "false"}:
        return "bool", Use.CATEGORY, "bool", "true and false"
    return None


def _number_texts(texts: Sequence[str]) -> Found | None:
    if any(_LEADING_ZERO.match(text.strip()) and "." not in text for text in texts):
        return None
    if _all_are(texts, converter("long", ";", "s")):
        return _whole([converter("long", ";", "s")(text) for text in texts], "long")
    if _all_are(texts, converter("double", ";", "s")):
        return "double", Use.NUMBER, "double", "numbers"
    return None


def _whole(values: Sequence[int], said_type: str) -> Found | None:
    """None for numbers that no field holds."""
    least, most = min(values), max(values)
    if not -(2**63) < least <= most < 2**63:
        return None
    type_ = "int" if least >= -_INT_SAFE and most <= _INT_SAFE else "long"
    return type_, Use.NUMBER, said_type and type_, f"whole numbers from {least} to {most}"


def _time_texts(texts: Sequence[str]) -> Found | None:
    if all(_TIME.fullmatch(text.strip()) for text in texts) and _all_are(texts, converter("timestamp", ";", "s")):
        return "long", Use.NUMBER, "timestamp", "times, as seconds since 1970"
    forms = [form for form in GUESSED_FORMS if _all_are(texts, converter(f"{DATE_FORM}{form}", ";", "s"))]
    if len(forms) == 1:
        return "long", Use.NUMBER, f"{DATE_FORM}{forms[0]}", f"dates as {forms[0]}, kept as seconds since 1970 in UTC"
    if forms:
        what = f"dates as {' or '.join(forms)}, which the sample does not tell apart"
        return "string", Use.CATEGORY, "", what
    return None


def _is_time(said_type: str) -> bool:
    return said_type == "timestamp" or said_type.startswith(DATE_FORM)


def _list_texts(texts: Sequence[str]) -> Found | None:
    """Lists of texts: as JSON, or with semicolons between short parts."""
    if all(text.strip().startswith("[") and text.strip().endswith("]") for text in texts):
        try:
            lists = [orjson.loads(text) for text in texts]
        except orjson.JSONDecodeError:
            return None
        found = _listed(lists)
        if found is None:
            return None
        type_, use, _, why = found
        return type_, use, "json", f"{why}, as JSON"
    several = sum(";" in text for text in texts)
    parts = [part.strip() for text in texts for part in text.split(";")]
    if several * 2 >= len(texts) and max(map(len, parts)) <= _LIST_PART_CHARACTERS:
        return "array<string>", Use.CATEGORY, "array<string>", "texts between semicolons"
    return None


def _all_are(texts: Sequence[str], convert: Callable[[str], Any]) -> bool:
    try:
        for text in texts:
            convert(text)
    except ValueError:
        return False
    return True


def _title(texts: Sequence[Column]) -> Column | None:
    named = [column for key in _TITLE_NAMES for column in texts if key in column.field.split("_")]
    return next(iter((*named, *texts)), None)


def _shown(value: Any) -> str:
    text = value if isinstance(value, str) else orjson.dumps(value, default=str).decode()
    flat = " ".join(text.split())
    return flat if len(flat) <= 50 else f"{flat[:50]}…"
