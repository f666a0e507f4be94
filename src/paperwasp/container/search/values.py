"""The values of search parameters: from text to what they say. Each fails with a ValueError that says what is wanted.

Vespa: https://docs.vespa.ai/en/reference/api/query.html
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Any, Final, NamedTuple

import orjson

from paperwasp import limits
from paperwasp.base.patterns import compile_later
from paperwasp.container.timeouts import duration_ms
from paperwasp.document.tensor.json_output import FORMS

LIST_FEATURES_TIMEOUT_MS: Final = 360_000
"""The timeout of a query that lists all rank features, whatever timeout it has, as in Vespa."""
XML_FORMATS: Final = ("xml", "page")
FORMATS: Final = ("json", "cbor", *XML_FORMATS)
_RENDERERS: Final = {
    **{name: name for name in FORMATS},
    "": "json",
    "default": "json",
    "jsonrenderer": "json",
    "cborrenderer": "cbor",
    "xmlrenderer": "xml",
    "pagetemplatesxmlrenderer": "page",
}
"""Alias or id in lower case → the format."""
INTEGER_BITS: Final = 31


class SentArray(str):
    """The text of a JSON array that is an input in a body, beside the array: a vector need not be read twice."""

    __slots__ = ("values",)
    values: list[Any]

    def __new__(cls, text: str, values: list[Any]) -> SentArray:
        made = super().__new__(cls, text)
        made.values = values
        return made

    def take(self) -> list[Any]:
        """The array, once: whoever keeps the text does not keep that. Afterwards an empty one."""
        taken, self.values = self.values, []
        return taken


_MOST_BUDGET_MS: Final = 2**32 - 1
_FRESHNESS: Final = compile_later(r"(now)?\s*(?:(-)?\s*(\d{1,15}))?", re.ASCII | re.IGNORECASE)
_CALLBACK: Final = compile_later(r"[A-Za-z_$][\w$]*(?:\.[A-Za-z_$][\w$]*)*", re.ASCII)
_CALLBACK_CHARACTERS: Final = 200
_NODES: Final = r"(?:\*|(?:\d{1,9}|\[\d{1,9},\d{1,9}>)(?:,(?:\d{1,9}|\[\d{1,9},\d{1,9}>))*)?"
_SEARCH_PATH_ELEMENT: Final = compile_later(rf"{_NODES}(?:/(?:\*|\d{{1,9}})?)?", re.ASCII)


class Now(NamedTuple):
    """The time for a query: `seconds` since 1970, or, if `is_relative`, before the present."""

    seconds: float = 0.0
    is_relative: bool = True


PRESENT: Final = Now()


def items(text: str) -> int:
    """How many items a query may have."""
    return min(count(text), limits.QUERY_ITEMS)


def budget_ms(text: str) -> int:
    """A duration in whole milliseconds; of a longer time the most that there is. Vespa: Matching.java"""
    return int(min(duration_ms(text), _MOST_BUDGET_MS))


def number(text: str) -> float:
    try:
        if "_" not in text:
            return float(text)
    except ValueError:
        pass
    raise ValueError("must be a number")


def integer(text: str, bits: int = INTEGER_BITS) -> int:
    body = text[1:] if text[:1] in ("-", "+") else text
    if not (body.isascii() and body.isdecimal() and len(body) <= 19 and abs(int(text)) < 1 << bits):
        raise ValueError("must be an integer")
    return int(text)


def count(text: str) -> int:
    return _not_negative(integer(text))


def window(name: str) -> Callable[[str], int]:
    """A conversion to a number of hits."""
    return partial(hits_of_window, name)


def hits_of_window(name: str, text: str) -> int:
    """A number of hits."""
    value = integer(text)
    if value < 0:
        raise ValueError(f"'{name}' must be a positive number, not {value}")
    return value


def long_count(text: str) -> int:
    return _not_negative(integer(text, 63))


def positive(text: str) -> int:
    value = integer(text)
    if value < 1:
        raise ValueError("must be 1 or more")
    return value


def _not_negative(value: int) -> int:
    if value < 0:
        raise ValueError("must not be negative")
    return value


def boolean(text: str) -> bool:
    """True where the text is `true`, in any case, or empty; every other text is false.

    Vespa: asBoolean of Properties.java (processing)
    """
    return not text or text.lower() == "true"


def names(text: str) -> tuple[str, ...]:
    """Names between commas; empty ones do not count."""
    return tuple(name for name in (part.strip() for part in text.split(",")) if name)


def names_of_json(text: str) -> tuple[str, ...]:
    """The strings of a JSON array; none in the empty text."""
    try:
        listed = orjson.loads(text) if text else []
    except orjson.JSONDecodeError:
        listed = None
    if not isinstance(listed, list) or not all(isinstance(name, str) for name in listed):
        raise ValueError("must be a JSON array of names")
    return tuple(listed)


def level(text: str) -> int:
    """The level of a trace; the highest that says more than the one below it is 9."""
    return max(0, min(integer(text), 9))


def explain_level(text: str) -> int:
    return max(0, min(integer(text), 3))


def fraction(text: str) -> float:
    value = number(text)
    if not 0 <= value <= 1:
        raise ValueError("must be from 0 to 1")
    return value


def share(text: str) -> float:
    """A fraction; -0 is 0."""
    return abs(fraction(text))


def from_one(text: str) -> float:
    value = number(text)
    if not value >= 1:
        raise ValueError("must be 1 or more")
    return value


def element_gap(text: str) -> float:
    """Positions between the elements of a field; infinite: they are never near each other."""
    return float("inf") if text == "infinity" else float(count(text))


def renderer(text: str) -> str:
    """One of `FORMATS`, or the text of none, which `check_format` refuses where no other format takes its place."""
    return _RENDERERS.get(text.lower(), text)


def check_format(name: str) -> None:
    """Errors: ValueError for a format that is none of `FORMATS`; the empty text names none."""
    if name and name not in FORMATS:
        raise ValueError(f"No renderer with id or alias '{name}'. Available renderers are: [{', '.join(FORMATS)}]")


def callback(text: str) -> str:
    """A name in JavaScript: nothing else may get in front of an answer."""
    if text and (len(text) > _CALLBACK_CHARACTERS or not _CALLBACK.fullmatch(text)):
        raise ValueError("must be the name of a function")
    return text


def freshness(text: str) -> Now:
    """`now`, `now-100`, `now-` (a second ago), or seconds since 1970. Vespa: Freshness.java"""
    match = _FRESHNESS.fullmatch(f"{text}1" if text.lower() == "now-" else text.strip())
    if match is None or (match[1] and match[3] and not match[2]):
        raise ValueError("must be 'now', 'now-' and seconds, or seconds since 1970")
    if match[1] or not match[3]:
        return Now(float(match[3] or 0))
    return Now(float(match[3]) * (-1 if match[2] else 1), is_relative=False)


def search_path(text: str) -> str:
    """Which nodes and groups are to answer. There is one of each here, so that it only needs to be well-formed."""
    if text and not all(_SEARCH_PATH_ELEMENT.fullmatch(element.strip()) for element in text.split(";")):
        raise ValueError("must be NODES/GROUP, as in '0,[2,4>/0', with ';' between several")
    return text


def language_tag(text: str) -> str:
    """A language tag of RFC 5646, where `_` is as good as `-`."""
    tag = text.replace("_", "-")
    if tag and not re.fullmatch(r"[A-Za-z]{1,8}(?:-[A-Za-z0-9]{1,8}){0,8}", tag):
        raise ValueError("must be a language tag such as 'en' or 'pt-BR'")
    return tag


def one_of(*words: str) -> Callable[[str], str]:
    """A conversion to one of some words, in any case; the empty text is none of them and says nothing."""
    return partial(word_of, {word.lower(): word for word in words})


def word_of(known: Mapping[str, str], text: str) -> str:
    """The word among those that are known by their lower case."""
    if text and text.lower() not in known:
        raise ValueError(f"must be {_join_words(known.values())}")
    return known.get(text.lower(), "")


def tensor_form(text: str) -> str:
    if text not in FORMS:
        raise ValueError(f"must be {_join_words(FORMS)}")
    return text


def _join_words(words: Collection[str]) -> str:
    *rest, last = words
    return f"{', '.join(rest)} or {last}"
