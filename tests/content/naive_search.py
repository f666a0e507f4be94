"""A plain reading of queries: random schemas, documents and query trees, and which documents each tree matches.

Written from Vespa's documentation, with nothing of the code that is tested but the items of the query tree: a document
is a dict, its text is cut by a regular expression, and every operator is a few lines over the values of one document.
The vocabulary is small, so that its few stems can be written down.

Vespa: https://docs.vespa.ai/en/reference/querying/yql.html
"""

from __future__ import annotations

import random
import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from paperwasp.query import (
    AndItem,
    DotProductItem,
    EquivItem,
    FalseItem,
    FuzzyItem,
    InItem,
    Item,
    NearItem,
    NotItem,
    OrItem,
    PhraseItem,
    PrefixItem,
    RangeItem,
    RankItem,
    RegexItem,
    SameElementItem,
    SubstringItem,
    SuffixItem,
    TrueItem,
    WeakAndItem,
    WeightedSetItem,
    WordAlternativesItem,
    WordItem,
)

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
    fields = (*texts, *strings, *numbers, Values("flag", "bool"), *structs)
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
            return kind(tuple(child(depth - 1) for _ in range(2)))  # type: ignore[no-any-return]
        name = rng.choice(list(field.parts))
        return value_query(rng, name, field.parts[name])

    if rng.random() < 0.4:
        name = rng.choice(list(field.parts))
        return value_query(rng, f"{field.name}.{name}", field.parts[name])
    return SameElementItem(field.name, tuple(child(1) for _ in range(rng.randint(1, 3))))


# ----------------------------------------------------------------------------------------------------------- matching


def matches(item: Item, document: Document, domain: Domain) -> bool:
    """Whether the query matches the document."""
    match item:
        case TrueItem():
            return True
        case FalseItem():
            return False
        case AndItem():
            return all(matches(child, document, domain) for child in item.children)
        case OrItem() | WeakAndItem():
            return any(matches(child, document, domain) for child in item.children)
        case NotItem():
            first, *others = (matches(child, document, domain) for child in item.children)
            return first and not any(others)
        case RankItem():
            return matches(item.children[0], document, domain)
        case EquivItem():
            return any(matches(child, document, domain) for child in item.children)
        case NearItem():
            return is_near(item, document, domain)
        case SameElementItem():
            elements = domain.by_name[item.index].elements(document)
            return any(all(part_matches(child, element) for child in item.children) for element in elements)
    return leaf_matches(item, document, domain)


def leaf_matches(item: Any, document: Document, domain: Domain) -> bool:
    index, _, part = item.index.partition(".")
    if index == "default":
        return any(text_matches(item, text, document) for text in domain.default_fields())
    field = domain.by_name[index]
    if isinstance(field, Text):
        return text_matches(item, field, document)
    if isinstance(field, Structs):
        return any(part in element and value_matches(item, element[part]) for element in field.elements(document))
    return any(value_matches(item, value, field.cased) for value in field.elements(document))


def part_matches(item: Any, element: Mapping[str, Any]) -> bool:
    match item:
        case AndItem():
            return all(part_matches(child, element) for child in item.children)
        case OrItem():
            return any(part_matches(child, element) for child in item.children)
        case NotItem():
            first, *others = (part_matches(child, element) for child in item.children)
            return first and not any(others)
    return item.index in element and value_matches(item, element[item.index])


def text_matches(item: Any, field: Text, document: Document) -> bool:
    match item:
        case WordItem():
            sought = [field.terms(item.word)]
        case PhraseItem():
            sought = [[term for word in item.words for term in field.terms(word)]]
        case WordAlternativesItem():
            sought = [[replace(field, stemming=False).term(word)] for word, _ in item.alternatives]  # as they are
    elements = field.elements(document)
    return any(is_within(terms, element) for terms in sought for element in elements)


def is_within(terms: Sequence[str], element: Sequence[str]) -> bool:
    """Whether the terms stand next to each other."""
    return any(element[at : at + len(terms)] == terms for at in range(len(element) - len(terms) + 1))


def is_near(item: NearItem, document: Document, domain: Domain) -> bool:
    [index] = {child.index for child in item.children}  # type: ignore[attr-defined]
    field = domain.by_name[index]
    assert isinstance(field, Text)
    terms = [field.term(child.word) for child in item.children]  # type: ignore[attr-defined]
    return any(
        places[-1] - places[0] <= item.distance if item.ordered else max(places) - min(places) <= item.distance
        for element in field.elements(document)
        for places in placings(terms, element, item.ordered)
    )


def placings(terms: Sequence[str], element: Sequence[str], ordered: bool) -> Iterator[list[int]]:
    """All ways to find each term in the element."""
    if not terms:
        yield []
        return
    for rest in placings(terms[:-1], element, ordered):
        for at, term in enumerate(element):
            if term == terms[-1] and not (ordered and rest and at <= rest[-1]):
                yield [*rest, at]


def value_matches(item: Any, value: Any, cased: bool = False) -> bool:
    if isinstance(value, str):
        return string_matches(item, value if cased else value.lower(), str if cased else str.lower)
    match item:
        case RangeItem():
            above = item.low is None or (value >= item.low if item.low_inclusive else value > item.low)
            return above and (item.high is None or (value <= item.high if item.high_inclusive else value < item.high))
        case WordItem():
            return number_word_matches(item.word, value)
        case InItem():
            return value in item.values
        case WeightedSetItem() | DotProductItem():
            return value in [token for token, _ in item.tokens]
    raise AssertionError(item)


def number_word_matches(word: str, value: float) -> bool:
    if word[0] in "<>":
        bound = float(word[1:])
        return value < bound if word[0] == "<" else value > bound
    if word[0] == "[":
        low, high = map(float, word[1:-1].split(";"))
        return low <= value <= high
    return value == float(word)


def string_matches(item: Any, value: str, fold: Callable[[str], str]) -> bool:
    match item:
        case WordItem():
            return value == fold(item.word)
        case PrefixItem():
            return value.startswith(fold(item.word))
        case SuffixItem():
            return value.endswith(fold(item.word))
        case SubstringItem():
            return fold(item.word) in value
        case RegexItem():
            flags = re.IGNORECASE if fold is str.lower else 0
            return re.search(item.expression, value, flags) is not None
        case FuzzyItem():
            return is_fuzzy(item, value, fold(item.word))
        case InItem():
            return value in [fold(str(word)) for word in item.values]
        case WeightedSetItem() | DotProductItem():
            return value in [fold(str(token)) for token, _ in item.tokens]
    raise AssertionError(item)


def is_fuzzy(item: FuzzyItem, value: str, word: str) -> bool:
    if value[: item.prefix_length] != word[: item.prefix_length]:
        return False
    value, word = value[item.prefix_length :], word[item.prefix_length :]
    candidates = [value[:end] for end in range(len(value) + 1)] if item.prefix else [value]
    return any(edits(word, candidate) <= item.max_edits for candidate in candidates)


def edits(a: str, b: str) -> int:
    """Insertions, deletions and substitutions between two texts."""
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        previous, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            previous, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, previous + (x != y))
    return row[-1]
