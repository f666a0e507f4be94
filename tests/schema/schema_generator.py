"""Schemas at random: written by the table of the grammar, with names, types and values that mostly fit."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping

from paperwasp.schema.grammar import BLOCKS, Block, Element, HeaderPart, Value

NAMES = (
    *("a", "b", "c", "d", "e", "f", "title", "year", "vec", "ref", "loc", "person", "default", "first", "all"),
    *("name", "rank", "index", "tags", "text", "body", "url", "score", "clicks", "unranked", "other"),
)
WORDS = {
    "stemming": ("none", "best", "shortest", "multiple"),
    "normalizing": ("none", "lowercase", "all"),
    "rank-type": ("identity", "about", "tags", "empty"),
    "distance-metric": ("angular", "euclidean", "hamming"),
}
"""Keyword → words that fit, mostly."""
TYPES = (
    *("string", "int", "bool", "array<string>", "weightedset<string>", "map<string,int>", "map<string,person>"),
    *("array<person>", "person", "tensor<float>(x[3])", "tensor(m{},x[2])", "position", "predicate", "raw", "uri"),
    *("reference<other>", "reference<s>", "float16", "long", "annotationreference<a>", "array<array<int>>", "strin"),
    "tag",
)
SCRIPTS = (
    *("summary | index", "attribute", "summary | attribute | index", "input a | lowercase | index", "index b"),
    *('input a . " " . input b | summary | index', "now | attribute", "{ summary; index; }", "summary |"),
    *('if (input year == 1) { "x" | index; } else { "y" | index; }', "for_each { trim } | attribute"),
    *("split ',' | index", "lowercse | index", "embed | attribute | index"),
)
EXPRESSIONS = ("1", "bm25(title) + attribute(year)", "file:e", "sum(query(a))", "if (a > 1, 2, 3)", "")
LINES = (*EXPRESSIONS, "bm25(title) now", "a b, c", "best")
INPUTS = (
    "a",
    "query(b)",
    "c double: 1",
    "query(d) tensor(x[3]): [1,2,3]",
    "e tensor(m{}):{a:1}",
    "f string",
    "g: file:g",
)
MUTATIONS = ("year += 1", "a = -2.5", "b *= 2", "")


class Generator:
    """Texts of schemas from one source of chance."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance

    def schema(self) -> str:
        """A schema of the name `schema`, which sometimes inherits `other`."""
        inherits = self.chance.choice(("", "inherits other"))
        elements = [word for word in BLOCKS["schema"] if word != "document"]
        said = [self.chance.choice(elements) for _ in range(self.chance.randrange(8))]
        body = "".join(self.element("schema", word, BLOCKS["schema"][word], 1) for word in said)
        fields = "".join(self.element("document", "field", BLOCKS["document"]["field"], 2) for _ in range(4))
        document = self.block("document", BLOCKS["schema"]["document"], 2)
        return f"schema schema {inherits} {{\ndocument {inherits} {{\n{fields}{document}}}\n{body}}}\n"

    def element(self, block: str, keyword: str, element: Element, depth: int) -> str:
        header = " ".join([keyword, *(self.header(part) for part in element.header)])
        forms: list[Callable[[], str]] = []
        if element.value is not None:
            forms.append(lambda: f"{header}: {self.value(keyword, element)}\n")
        if element.block is not None:
            forms.append(lambda: f"{header} {{\n{self.block(keyword, element, depth + 1)}}}\n")
        if element.bare:
            forms.append(lambda: f"{header}\n")
        return self.chance.choice(forms)()

    def block(self, keyword: str, element: Element, depth: int) -> str:
        match element.block:
            case Block.TEXT:
                return self.chance.choice(MUTATIONS if keyword.startswith("on-") else (*SCRIPTS, *LINES)) + "\n"
            case Block.PROPERTIES:
                return "".join(f"{self.name()}: {self.name()}\n" for _ in range(self.chance.randrange(3)))
            case Block.INPUTS:
                return "".join(f"{self.chance.choice(INPUTS)}\n" for _ in range(self.chance.randrange(3)))
        elements: Mapping[str, Element] = BLOCKS[str(element.block)]
        count = self.chance.randrange(8 if depth < 3 else 4 if depth < 8 else 1)
        said = [self.chance.choice(list(elements)) for _ in range(count if elements else 0)]
        return "".join(self.element(str(element.block), word, elements[word], depth) for word in said)

    def name(self) -> str:
        return self.chance.choice(NAMES)

    def header(self, part: HeaderPart) -> str:
        chance = self.chance
        match part:
            case HeaderPart.OPTIONAL_NAME:
                return chance.choice(("", "", self.name()))
            case HeaderPart.PATH:
                return f"{self.name()}.{self.name()}"
            case HeaderPart.QUOTED_NAME:
                return chance.choice((self.name(), '"in:0"'))
            case HeaderPart.FUNCTION:
                return chance.choice(("", "inline ")) + f"{self.name()}({chance.choice(('', 'x', 'x, y', 'x, x'))})"
            case HeaderPart.INHERITS:
                return chance.choice(("", "", "", f"inherits {self.name()}", f"inherits default, {self.name()}"))
            case HeaderPart.TYPE:
                return f"type {chance.choice(TYPES)}"
            case HeaderPart.OPTIONAL_TYPE:
                return chance.choice(("", f"type {chance.choice(TYPES)}"))
            case HeaderPart.FIELD:
                return "field"
            case HeaderPart.AS:
                return f"as {self.name()}"
        return self.name()

    def value(self, keyword: str, element: Element) -> str:
        chance = self.chance
        match element.value:
            case Value.CHILD | Value.CHILDREN:
                elements = BLOCKS[str(element.block)]
                word = chance.choice(list(elements))
                return self.element(str(element.block), word, elements[word], 9).strip()
            case Value.WORD:
                return chance.choice(element.choices or WORDS.get(keyword, NAMES) or NAMES)
            case Value.WORDS:
                return ", ".join(self.name() for _ in range(chance.randrange(1, 4)))
            case Value.TEXT:
                return chance.choice((self.name(), '"@%"', "'x y'"))
            case Value.PATH:
                return chance.choice(("models/a.onnx", "constants/b.json"))
            case Value.INTEGER:
                return str(chance.choice((0, 1, 2, 100, -1, 10**12, 9 * 10**40)))
            case Value.NUMBER | Value.NUMBER_OR_WORD:
                return chance.choice(("0.5", "0", "-1", "7", "1e999", "3.25"))
            case Value.BOOLEAN:
                return chance.choice(("on", "off", "true", "false"))
            case Value.TYPE:
                return chance.choice(TYPES)
        return chance.choice(SCRIPTS if element.value is Value.SCRIPT else LINES)
