"""Which type the values of a column have, and what the column is for: found by words, filtered by, near by vectors.

Texts of CSV are what they look like if all of the sample look so: a column of digits is of numbers, one with a single
`n/a` is of texts. Numbers with leading zeros are texts: postal codes and article numbers would lose them.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Collection, Sequence
from decimal import Decimal
from enum import Enum
from typing import Any, Final

import orjson

from paperwasp.client.init.sample import Sample
from paperwasp.client.sources.values import converter
from paperwasp.errors import InvalidInput
from paperwasp.patterns import compile_later
from paperwasp.records import dataclass
from paperwasp.schema.data_types import RESERVED_NAMES

_VECTOR_LENGTH: Final = 8
"""Lists of numbers that are all of one length, and not shorter, are vectors."""
_CATEGORY_SHARE: Final = 0.5
_CATEGORY_WORDS: Final = 3
"""Texts of at most this many words on average, which come twice on average, are categories."""
_PROSE_WORDS: Final = 1.5
_LIST_PART_CHARACTERS: Final = 40
_INT_SAFE: Final = 2**30
"""Whole numbers up to this are `int`, so that there is room for twice as large ones; others are `long`."""
_ID_NAMES: Final = ("documentid", "id", "_id", "docid", "doc_id", "uuid", "guid", "key", "sku", "isbn", "asin", "doi")
_TITLE_NAMES: Final = ("title", "name", "headline", "subject", "heading", "label", "product", "question")
_NOT_IN_NAMES: Final = compile_later(r"[^a-z0-9]+")
_LEADING_ZERO: Final = compile_later(r"[+-]?0[0-9]")
_TIME: Final = compile_later(r"[0-9]{4}-[0-9]{2}-[0-9]{2}(?:[T ][0-9:.]+(?:Z|[+-][0-9:]+)?)?")
_URL: Final = compile_later(r"https?://\S+")
_RESERVED: Final = RESERVED_NAMES | {"all", "documentid", "id", "relevance", "source", "sddocname", "rank", "position"}


class Use(Enum):
    """What a field is for."""

    TEXT = "found by its words"
    CATEGORY = "filtered and grouped by"
    NUMBER = "filtered, sorted and grouped by"
    VECTOR = "searched for what is near"
    SHOWN = "shown"
    LEFT_OUT = "left out"


@dataclass(frozen=True, slots=True)
class Column:
    """A column of the file, and the field that it becomes."""

    name: str
    field: str
    type: str
    """Of the field, in the schema language."""
    use: Use
    said_type: str
    """For `--field-type`, where texts of the file stand for something else; empty: they do not."""
    why: str
    """What of the values speaks for the type, for a comment."""
    example: str
    """One of the values."""


@dataclass(frozen=True, slots=True)
class Guess:
    """What the rows of a file are."""

    columns: tuple[Column, ...]
    id: str
    """The column with the ids."""
    title: Column | None
    """The text that a person would know a row by."""

    def of(self, *uses: Use) -> list[Column]:
        """The columns with one of these uses."""
        return [column for column in self.columns if column.use in uses]


def guess(sample: Sample, id_column: str | None) -> Guess:
    """What the rows of a sample are. Errors: InvalidInput where no column can be the id."""
    identity = _id_column(sample, id_column)
    taken: set[str] = set()
    named = [name for name in sample.columns if name != identity or _is_prose(sample, name)]
    columns = tuple(_column(sample, name, taken) for name in named)
    texts = [column for column in columns if column.use is Use.TEXT]
    return Guess(columns, identity, _title(texts))


def field_name(column: str, taken: Collection[str] = ()) -> str:
    """The name of a field for a column: small letters, digits and underscores, and no other field's."""
    name = _NOT_IN_NAMES.sub("_", column.lower()).strip("_") or "field"
    if not name[0].isalpha() or name in _RESERVED:
        name = f"field_{name}"
    number, base = 2, name
    while name in taken:
        name = f"{base}_{number}"
        number += 1
    return name


def _id_column(sample: Sample, said: str | None) -> str:
    if said is not None:
        if said not in sample.columns:
            raise InvalidInput(f"--id names '{said}', and the columns are {', '.join(sample.columns)}")
        return said
    candidates = [name for name in sample.columns if _is_unique(sample, name)]
    named = [name for key in _ID_NAMES for name in candidates if field_name(name) in (key, f"field_{key}")]
    ending = [name for name in candidates if name.lower().endswith(("id", "_key", "_no", "code"))]
    found = next(iter((*named, *ending, *candidates)), None)
    if found is None:
        raise InvalidInput(
            f"No column has another value in each row, so none can be the id of documents: add one, or name one with "
            f"--id; the columns are {', '.join(sample.columns)}"
        )
    return found


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
    for look in (_typed, _listed, _as_text):
        found = look(values)
        if found is not None:
            type_, use, said_type, why = found
            return Column(name, field, type_, use, said_type, why, example)
    return Column(name, field, "string", Use.LEFT_OUT, "", "objects need a struct or a map of their own", example)


Found = tuple[str, Use, str, str]
"""Type, use, what --field-type says, why."""


def _typed(values: Sequence[Any]) -> Found | None:
    """What values that are not texts are, as JSON and Parquet have them."""
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
    """What lists are: vectors, or arrays."""
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


def _as_text(values: Sequence[Any]) -> Found | None:
    """What texts stand for; values of several kinds are taken as texts."""
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
        return "string", Use.CATEGORY, "", f"{len(set(texts))} different texts in {len(texts)} rows"
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
    return None


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
