"""Random schemas, documents and query trees, for a plain reading of them (`naive_matching`).

Written from Vespa's documentation, with nothing of the code that is tested but the items of the query tree: a document
is a dict, its text is cut by a regular expression. The vocabulary is small, so that its few stems can be written down.

Vespa: https://docs.vespa.ai/en/reference/querying/yql.html
"""

from __future__ import annotations

import random
import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from paperwasp.search.operators.boolean import AndItem, FalseItem, NotItem, OrItem, RankItem, TrueItem
from paperwasp.search.operators.equiv import EquivItem, WordAlternativesItem
from paperwasp.search.operators.in_operator import InItem
from paperwasp.search.operators.item import Item
from paperwasp.search.operators.near import NearItem
from paperwasp.search.operators.patterns import (
    FuzzyItem,
    PrefixItem,
    RegexItem,
    SubstringItem,
    SuffixItem,
    TextRangeItem,
)
from paperwasp.search.operators.phrase import PhraseItem
from paperwasp.search.operators.range_operator import RangeItem
from paperwasp.search.operators.same_element import SameElementItem
from paperwasp.search.operators.weak_and import WeakAndItem
from paperwasp.search.operators.weighted import DotProductItem, WeightedSetItem
from paperwasp.search.operators.word import WordItem

Document = Mapping[str, Any]
WORDS = ("red", "blue", "green", "cat", "cats", "Trains", "train", "x1", "Zebra", "zebra", "élan", "Élan")
VALUES = ("red", "Red", "blue", "bluer", "green", "x1", "x12", "Zebra", "zebra crossing", "a-b", "42")
STEMS = {"cats": "cat", "trains": "train"}
PATTERNS = ("^b", "e$", "r.d", "[gz]", "x\\d", "RED", "^blue$", "a|r", "q")
LEAST = -(2**31)
SEPARATORS = (" ", " ", "-", ", ", " (", "\n")


# ------------------------------------------------------------------------------------------------------------- fields


@dataclass(frozen=True)
class Text:
    """A field with an index: single, `array` or `weightedset`."""

    name: str
    shape: str = ""
    stemming: bool = True
    normalizing: bool = True
    whole: bool = False

    def declaration(self, rng: random.Random) -> str:
        lines = ["indexing: index | summary"]
        if not self.stemming:
            lines.append("stemming: none")
        if not self.normalizing:
            lines.append("normalizing: none")
        if self.whole:
            lines.append("match: word")
        return field_declaration(self.name, shaped("string", self.shape), lines)

    def value(self, rng: random.Random) -> Any:
        def text() -> str:
            return "".join(rng.choice(WORDS) + rng.choice(SEPARATORS) for _ in range(rng.randrange(8))).strip()

        return shaped_value(rng, self.shape, text)

    def term(self, word: str) -> str:
        word = word.lower()
        if self.normalizing:
            word = "".join(c for c in unicodedata.normalize("NFD", word) if not unicodedata.combining(c))
        return STEMS.get(word, word) if self.stemming and not self.whole else word

    def terms(self, text: str) -> list[str]:
        words = [text] if self.whole else re.findall(r"\w+", text)
        return [self.term(word) for word in words if word]

    def elements(self, document: Document) -> list[list[str]]:
        """The terms of each element."""
        return [self.terms(text) for text in elements_of(document.get(self.name))]


@dataclass(frozen=True)
class Values:
    """An attribute: `kind` is the type of its values."""

    name: str
    kind: str
    shape: str = ""
    cased: bool = False
    fast: bool = False

    def declaration(self, rng: random.Random) -> str:
        lines = ["indexing: attribute | summary"]
        if self.fast:
            lines.append("attribute: fast-search")
        if self.cased:
            lines += ["match: cased"]
            if self.fast:
                lines.append("dictionary: cased")
        return field_declaration(self.name, shaped(self.kind, self.shape), lines)

    def value(self, rng: random.Random) -> Any:
        return shaped_value(rng, self.shape, lambda: single_value(rng, self.kind))

    def folded(self, value: Any) -> Any:
        return value if self.cased or not isinstance(value, str) else value.lower()

    def elements(self, document: Document) -> list[Any]:
        return [self.folded(value) for value in elements_of(document.get(self.name)) if value != ""]


@dataclass(frozen=True)
class Structs:
    """An array of structs, or a map, with parts as attributes: `name` a string, `number` an int."""

    name: str
    shape: str

    @property
    def parts(self) -> dict[str, str]:
        """Path of a part below the field → type."""
        kinds = {"name": "string", "number": "int"}
        if self.shape == "array":
            return kinds
        if self.shape == "map":
            return {"key": "string", "value": "int"}
        return {"key": "string", **{f"value.{name}": kind for name, kind in kinds.items()}}

    def declaration(self, rng: random.Random) -> str:
        kind = {"array": "array<part>", "map": "map<string, int>", "structs": "map<string, part>"}[self.shape]
        parts = [f"struct-field {name} {{ indexing: attribute }}" for name in self.parts]
        return field_declaration(self.name, kind, ["indexing: summary", *parts])

    def value(self, rng: random.Random) -> Any:
        def part() -> dict[str, Any]:
            members = {"name": rng.choice(VALUES), "number": rng.randrange(8)}
            return {name: value for name, value in members.items() if rng.random() < 0.8}

        if self.shape == "array":
            return [part() for _ in range(rng.randrange(4))]
        keys = rng.sample(VALUES, rng.randrange(4))
        return {key: rng.randrange(8) if self.shape == "map" else part() for key in keys}

    def elements(self, document: Document) -> list[dict[str, Any]]:
        """Of each element path → value. A number that is unset is the least one, as in Vespa."""
        value = document.get(self.name) or {}
        if self.shape == "map":
            return [{"key": key, "value": item} for key, item in value.items()]
        if self.shape == "array":
            return [{"number": LEAST, **item} for item in value]
        return [
            {"key": key, **{f"value.{n}": v for n, v in {"number": LEAST, **item}.items()}}
            for key, item in value.items()
        ]


Field = Text | Values | Structs


def field_declaration(name: str, kind: str, lines: Sequence[str]) -> str:
    inner = "\n".join(f"      {line}" for line in lines)
    return f"    field {name} type {kind} {{\n{inner}\n    }}\n"


def shaped(kind: str, shape: str) -> str:
    return f"{shape}<{kind}>" if shape else kind


def shaped_value(rng: random.Random, shape: str, single: Callable[[], Any]) -> Any:
    if not shape:
        return single()
    values = [single() for _ in range(rng.randrange(4))]
    return values if shape == "array" else dict.fromkeys((v for v in values if v != ""), rng.randrange(1, 9))


def single_value(rng: random.Random, kind: str) -> Any:
    if kind == "string":
        return rng.choice((*VALUES, ""))
    if kind == "bool":
        return rng.random() < 0.5
    return rng.randrange(-3, 10) / 2 if kind in ("float", "double") else rng.randrange(-3, 10)


def elements_of(value: Any) -> list[Any]:
    """The elements of a value; a single one is one."""
    if value is None:
        return []
    return list(value) if isinstance(value, list | dict) else [value]


# ------------------------------------------------------------------------------------------------------------ schemas

SHAPES = ("", "", "array", "weightedset")


@dataclass(frozen=True)
class Domain:
    """A schema, and what its documents and queries look like."""

    fields: tuple[Field, ...]
    declaration: str

    @property
    def by_name(self) -> dict[str, Field]:
        return {field.name: field for field in self.fields}

    def default_fields(self) -> list[Text]:
        return [field for field in self.fields if isinstance(field, Text)]

    def document(self, rng: random.Random) -> dict[str, Any]:
        return {field.name: field.value(rng) for field in self.fields if rng.random() < 0.85}


def random_domain(rng: random.Random) -> Domain:
    texts = [
        Text(f"text{n}", rng.choice(SHAPES), rng.random() < 0.6, rng.random() < 0.8, rng.random() < 0.15)
        for n in range(rng.randint(1, 3))
    ]
    strings = [
        Values(f"string{n}", "string", rng.choice(SHAPES), rng.random() < 0.3, rng.random() < 0.5)
        for n in range(rng.randint(1, 3))
    ]
    numbers = [
        Values(f"number{n}", kind, rng.choice(SHAPES) if kind in ("int", "long") else rng.choice(("", "array")),
               fast=rng.random() < 0.5)
        for n, kind in enumerate(rng.choices(("int", "long", "byte", "float", "double"), k=rng.randint(1, 3)))
    ]  # fmt: skip
    structs = [Structs(f"struct{n}", shape) for n, shape in enumerate(rng.sample(("array", "map", "structs"), 2))]
    fields: tuple[Field, ...] = (*texts, *strings, *numbers, Values("flag", "bool"), *structs)
    declared = "".join(field.declaration(rng) for field in fields)
    names = ", ".join(text.name for text in texts)
    part = "    struct part {\n      field name type string {}\n      field number type int {}\n    }\n"
    schema = (
        f"schema thing {{\n  document thing {{\n{part}{declared}  }}\n  fieldset default {{ fields: {names} }}\n}}\n"
    )
    return Domain(fields, schema)


# ------------------------------------------------------------------------------------------------------------ queries


def random_query(rng: random.Random, domain: Domain, depth: int = 3) -> Item:
    if depth > 0 and rng.random() < 0.5:
        children = tuple(random_query(rng, domain, depth - 1) for _ in range(rng.randint(1, 4)))
        return rng.choice((AndItem, AndItem, OrItem, WeakAndItem, RankItem, NotItem))(children)
    if rng.random() < 0.04:
        return rng.choice((TrueItem(), FalseItem()))
    field = rng.choice(domain.fields)
    if isinstance(field, Text):
        index = "default" if rng.random() < 0.2 else field.name
        return text_query(rng, field, index)
    if isinstance(field, Structs):
        return struct_query(rng, field)
    return value_query(rng, field.name, field.kind, field.shape)


def text_query(rng: random.Random, field: Text, index: str) -> Item:
    def word(index: str = index) -> WordItem:
        joined = rng.random() < 0.1 and not field.whole
        return WordItem(index, "-".join(rng.sample(WORDS, 2)) if joined else rng.choice(WORDS))

    def plain() -> WordItem:
        return WordItem(index, rng.choice(WORDS))

    kinds: list[Callable[[], Item]] = [word, word]
    if not field.whole:
        kinds += [
            lambda: PhraseItem(index, tuple(rng.choices(WORDS, k=rng.randint(2, 3)))),
            lambda: EquivItem((plain(), plain())),
            lambda: WordAlternativesItem(index, tuple((w, rng.random()) for w in rng.sample(WORDS, 2))),
        ]
        if index != "default":
            kinds += [
                lambda: NearItem(
                    tuple(WordItem(index, w) for w in distinct_words(rng, field)),
                    distance=rng.randrange(5),
                    ordered=rng.random() < 0.5,
                )
            ] * 2
    return rng.choice(kinds)()


def distinct_words(rng: random.Random, field: Text) -> list[str]:
    """Words that are different terms: what a word near itself means is another question."""
    words = {field.term(word): word for word in rng.sample(WORDS, 3)}
    return list(words.values()) if len(words) > 1 else ["red", "blue"]


def value_query(rng: random.Random, index: str, kind: str, shape: str = "") -> Item:
    if kind == "bool":
        return RangeItem(index, 1, 1)
    if kind != "string":
        return number_query(rng, index, kind, shape)
    value = rng.choice(VALUES)
    part = value[rng.randrange(len(value)) :][: rng.randint(1, 4)]
    kinds: list[Callable[[], Item]] = [
        lambda: WordItem(index, rng.choice((value, value.upper()))),
        lambda: PrefixItem(index, value[: rng.randint(1, 3)]),
        lambda: SuffixItem(index, value[-rng.randint(1, 3) :]),
        lambda: SubstringItem(index, part),
        lambda: RegexItem(index, rng.choice(PATTERNS)),
        lambda: FuzzyItem(index, value, rng.randrange(3), rng.randrange(3), rng.random() < 0.3),
        lambda: TextRangeItem(index, value, rng.choice((None, *VALUES)), rng.random() < 0.5, rng.random() < 0.5),
        lambda: InItem(index, tuple(rng.sample(VALUES, rng.randint(1, 4)))),
    ]
    if shape:
        kinds += [
            lambda: rng.choice((WeightedSetItem, DotProductItem))(
                index, tuple((v, rng.randint(1, 9)) for v in rng.sample(VALUES, rng.randint(1, 4)))
            )
        ]
    return rng.choice(kinds)()


def number_query(rng: random.Random, index: str, kind: str, shape: str) -> Item:
    low, high = sorted((rng.randrange(-4, 11), rng.randrange(-4, 11)))
    kinds: list[Callable[[], Item]] = [
        lambda: RangeItem(
            index,
            None if rng.random() < 0.2 else low,
            None if rng.random() < 0.2 else high,
            rng.random() < 0.7,
            rng.random() < 0.7,
        ),
        lambda: RangeItem(index, low + 0.5, high + 1.5),
        lambda: WordItem(index, rng.choice((str(low), f"<{high}", f">{low}", f"[{low};{high}]"))),
    ]
    if kind in ("int", "long", "byte"):
        kinds.append(lambda: InItem(index, tuple(rng.sample(range(-4, 11), rng.randint(1, 4)))))
        if shape:
            kinds.append(lambda: WeightedSetItem(index, ((low, 1), (high + 1, 2))))
    return rng.choice(kinds)()


def struct_query(rng: random.Random, field: Structs) -> Item:
    def child(depth: int) -> Item:
        if depth and rng.random() < 0.3:
            kind = rng.choice((AndItem, OrItem, NotItem))
            return kind(tuple(child(depth - 1) for _ in range(2)))
        name = rng.choice(list(field.parts))
        return value_query(rng, name, field.parts[name])

    if rng.random() < 0.4:
        name = rng.choice(list(field.parts))
        return value_query(rng, f"{field.name}.{name}", field.parts[name])
    return SameElementItem(field.name, tuple(child(1) for _ in range(rng.randint(1, 3))))
