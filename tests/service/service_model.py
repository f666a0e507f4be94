"""What documents are, said plainly: dicts of JSON values, and for every kind of change a function from value to value.

Nothing of the service is used here. What the functions do is what Vespa's documentation of the document JSON format
and of document/v1 says; where it leaves a case open, the case is not drawn.
"""

from __future__ import annotations

import base64
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

Value = Any
Document = dict[str, Value]
Change = tuple[str, dict[str, Value], Callable[[Value], Value]]
"""A key of an update's `fields` (a field, or a path into it), the operations on it, and what they make of the field's
value; None is no value."""
Condition = tuple[str, Callable[[Document], bool]]

SCHEMA = """schema music {
  document music {
    struct pair {
      field name type string {}
      field weight type int {}
    }
    field n type int { indexing: summary | attribute }
    field big type long { indexing: summary | attribute }
    field count type int { indexing: summary }
    field x type double { indexing: summary | attribute }
    field flag type bool { indexing: summary | attribute }
    field title type string { indexing: summary | index }
    field label type string { indexing: summary | attribute }
    field tags type array<string> { indexing: summary | attribute }
    field nums type array<int> { indexing: summary }
    field ws type weightedset<string> { indexing: summary | attribute }
    field m type map<string, int> { indexing: summary }
    field s type pair { indexing: summary }
    field pairs type array<pair> { indexing: summary }
    field t type tensor<double>(x{}) { indexing: summary | attribute }
    field d type tensor<float>(x[3]) { indexing: summary | attribute }
    field r type raw { indexing: summary }
    field pos type position { indexing: summary | attribute }
  }
  fieldset default { fields: title }
}
"""
ATTRIBUTES = frozenset({"n", "big", "x", "flag", "label", "tags", "ws", "t", "d", "pos"})
_WORDS = ("blue", "train", "giant", "steps", "kind", "green", "night")
_KEYS = ("a", "b", "c", "d", "e")
_EMPTY: tuple[Value, ...] = ("", [], {})


def shown(document: Document | None) -> Document | None:
    """As it is read: what is empty is not there, nor what is false, as which an unset attribute is shown."""
    if document is None:
        return None
    there = {name: value for name, value in document.items() if value is not None and value is not False}
    return {name: value for name, value in there.items() if value not in _EMPTY}


def same(first: Document | None, second: Document | None) -> bool:
    """Whether two documents read the same; the order in maps, sets and tensors is none."""
    return shown(first) == shown(second)


@dataclass(frozen=True)
class Drawn:
    """An operation: the parts of its request, and what it does."""

    method: str
    parameters: Mapping[str, str]
    body: Mapping[str, Value] | None
    apply: Callable[[Document | None], tuple[int, Document | None]]
    """From the document before (None: there is none) to the status of the answer and the document after."""


class Draw:
    """Draws operations and values by chance."""

    def __init__(self, seed: str) -> None:
        self.chance = random.Random(seed)

    # Values

    def text(self) -> str:
        return " ".join(self.chance.choices(_WORDS, k=self.chance.randint(1, 4)))

    def words(self) -> list[str]:
        return self.chance.choices(_WORDS, k=self.chance.randint(1, 4))

    def eighth(self) -> float:
        """A number that every float type holds exactly."""
        return self.chance.randrange(-4000, 4000) / 8

    def weights(self) -> dict[str, int]:
        return {key: self.chance.randrange(-50, 50) for key in self.keys()}

    def keys(self) -> list[str]:
        return self.chance.sample(_KEYS, self.chance.randint(1, len(_KEYS)))

    def pair(self) -> dict[str, Value]:
        return {"name": self.chance.choice(_WORDS), "weight": self.chance.randrange(100)}

    def tensor(self, keys: list[str] | None = None) -> dict[str, Value]:
        return {"type": "tensor(x{})", "cells": {key: self.eighth() for key in keys or self.keys()}}

    def vector(self) -> dict[str, Value]:
        return {"type": "tensor<float>(x[3])", "values": [self.eighth() for _ in range(3)]}

    def value(self, name: str) -> Value:
        """Of a field."""
        chance = self.chance
        drawn: dict[str, Callable[[], Value]] = {
            "n": lambda: chance.randrange(-1000, 1000),
            "big": lambda: chance.randrange(-(2**62), 2**62),
            "count": lambda: chance.randrange(-1000, 1000),
            "x": self.eighth,
            "flag": lambda: chance.random() < 0.5,
            "title": self.text,
            "label": self.text,
            "tags": self.words,
            "nums": lambda: [chance.randrange(100) for _ in range(chance.randint(1, 5))],
            "ws": self.weights,
            "m": self.weights,
            "s": self.pair,
            "pairs": lambda: [self.pair() for _ in range(chance.randint(1, 3))],
            "t": self.tensor,
            "d": self.vector,
            "r": lambda: base64.b64encode(chance.randbytes(chance.randint(1, 40))).decode(),
            "pos": lambda: {"lat": chance.randrange(-640, 640) / 8, "lng": chance.randrange(-1280, 1280) / 8},
        }
        return drawn[name]()

    def document(self) -> Document:
        return {name: self.value(name) for name in FIELDS if self.chance.random() < 0.5}

    # Operations

    def condition(self) -> Condition:
        number, word = self.chance.randrange(-500, 500), self.chance.choice(_WORDS)
        return self.chance.choice(
            [
                (f"music.n > {number}", lambda document: document.get("n") is not None and document["n"] > number),
                ("music.n == null", lambda document: document.get("n") is None),
                ("not music.title", lambda document: not document.get("title")),
                ("music.n % 2 == 0", lambda document: document.get("n") is not None and abs(document["n"]) % 2 == 0),
                (f'music.title = "*{word}*"', lambda document: word in (document.get("title") or "")),
                (f'music.title == "{word}" or music.label', lambda document: _titled(document, word)),
                (f"music.x < {number} and music.m", lambda document: _below(document, number)),
                ("music", lambda _: True),
                ("false", lambda _: False),
            ]
        )

    def operation(self, before: Document | None) -> Drawn:
        """One change of a document that is now `before`."""
        method = self.chance.choices(("POST", "PUT", "DELETE"), (3, 6, 1))[0]
        condition = self.condition() if self.chance.random() < 0.2 else None
        create = method != "DELETE" and self.chance.random() < 0.25
        parameters = ({"create": "true"} if create else {}) | ({"condition": condition[0]} if condition else {})
        fields: dict[str, Value] | None = None
        changes: list[Change] = []
        if method == "POST":
            fields = self.document()
        elif method == "PUT":
            changes = self.changes(before)
            fields = {path: operations for path, operations, _ in changes}

        def apply(document: Document | None) -> tuple[int, Document | None]:
            holds = None if condition is None or document is None else condition[1](document)
            if not _is_let_through(method, document, condition is not None, holds, create):
                return 412, document
            if method != "PUT":
                return 200, dict(fields) if fields is not None else None
            if document is None and not create:
                return 200, None
            return 200, changed(document, changes)

        return Drawn(method, parameters, None if fields is None else {"fields": fields}, apply)

    def changes(self, before: Document | None) -> list[Change]:
        """Changes of one to three fields."""
        names = self.chance.sample(sorted(FIELDS), self.chance.randint(1, 3))
        return [self.change(name, (before or {}).get(name)) for name in names]

    def change(self, name: str, value: Value) -> Change:
        """One change of a field that now has this value."""
        kind = self.chance.choice(FIELDS[name])
        if kind == "assign" or (drawn := getattr(self, f"_{kind}")(name, value)) is None:
            assigned = None if self.chance.random() < 0.15 else self.value(name)
            return name, {"assign": assigned}, lambda _: assigned
        found: Change = drawn
        return found

    def _arithmetic(self, name: str, _: Value) -> Change:
        operation = self.chance.choice(("increment", "decrement", "multiply"))
        operand = self.chance.randrange(4)
        small = {"increment": lambda v: v + operand, "decrement": lambda v: v - operand}

        def calculated(value: Value) -> Value:
            if value is None:
                if name in ATTRIBUTES:
                    return None
                value = 0
            return small[operation](value) if operation in small else value * operand

        # Products grow: they are drawn for small factors only, and every assignment begins anew.
        if operation == "multiply":
            operand = self.chance.randrange(2)
        return name, {operation: operand}, calculated

    def _halve(self, name: str, _: Value) -> Change:
        return name, {"divide": 2}, lambda value: None if value is None else value / 2

    def _append(self, name: str, _: Value) -> Change:
        added = self.value(name)
        return name, {"add": added}, lambda value: [*(value or []), *added]

    def _drop(self, name: str, value: Value) -> Change:
        dropped = self.chance.choice(value or self.value(name))
        return name, {"remove": [dropped]}, lambda value: [element for element in value or [] if element != dropped]

    def _set_element(self, name: str, value: Value) -> Change | None:
        if not value:
            return None
        index, new = self.chance.randrange(len(value)), self.value(name)[0]
        by_match = self.chance.random() < 0.5

        def replaced(elements: Value) -> Value:
            return [*elements[:index], new, *elements[index + 1 :]]

        if by_match:
            return name, {"match": {"element": index, "assign": new}}, replaced
        return f"{name}[{index}]", {"assign": new}, replaced

    def _drop_element(self, name: str, value: Value) -> Change | None:
        if not value:
            return None
        index = self.chance.randrange(len(value))
        return f"{name}[{index}]", {"remove": 0}, lambda elements: [*elements[:index], *elements[index + 1 :]]

    def _merge(self, name: str, _: Value) -> Change:
        added = self.value(name)
        return name, {"add": added}, lambda value: {**(value or {}), **added}

    def _drop_keys(self, name: str, _: Value) -> Change:
        dropped = self.keys()
        return name, {"remove": dict.fromkeys(dropped, 0)}, lambda value: _without(value, dropped)

    def _count_key(self, name: str, value: Value) -> Change | None:
        if not value:
            return None
        key, more = self.chance.choice(sorted(value)), self.chance.randrange(1, 5)
        change = {"match": {"element": key, "increment": more}}
        return name, change, lambda weights: {**weights, key: weights[key] + more}

    def _set_key(self, name: str, _: Value) -> Change:
        key, new = self.chance.choice(_KEYS), self.chance.randrange(100)
        return f"{name}{{{key}}}", {"assign": new}, lambda value: {**(value or {}), key: new}

    def _drop_key(self, name: str, _: Value) -> Change:
        key = self.chance.choice(_KEYS)
        return f"{name}{{{key}}}", {"remove": 0}, lambda value: _without(value, [key])

    def _set_member(self, name: str, value: Value) -> Change | None:
        if not value:
            return None
        new = self.chance.randrange(100)
        return f"{name}.weight", {"assign": new}, lambda pair: {**pair, "weight": new}

    def _count_member(self, name: str, value: Value) -> Change | None:
        if not value or "weight" not in value:
            return None
        return f"{name}.weight", {"increment": 3}, lambda pair: {**pair, "weight": pair["weight"] + 3}

    def _set_member_of_element(self, name: str, value: Value) -> Change | None:
        if not value:
            return None
        index, new = self.chance.randrange(len(value)), self.chance.choice(_WORDS)

        def replaced(pairs: Value) -> Value:
            return [*pairs[:index], {**pairs[index], "name": new}, *pairs[index + 1 :]]

        return f"{name}[{index}].name", {"assign": new}, replaced

    def _add_cells(self, name: str, _: Value) -> Change:
        added = self.tensor()
        return name, {"add": {"cells": added["cells"]}}, lambda value: _cells(value or added, added["cells"])

    def _drop_cells(self, name: str, value: Value) -> Change | None:
        labels = sorted(value["cells"]) if value else []
        if len(labels) < 2:
            return None
        dropped = self.chance.sample(labels, self.chance.randint(1, len(labels) - 1))
        change = {"remove": {"addresses": [{"x": label} for label in dropped]}}
        return name, change, lambda value: {**value, "cells": _without(value["cells"], dropped)}

    def _modify(self, name: str, value: Value) -> Change | None:
        if not value:
            return None
        operation, operand = self.chance.choice((("replace", 0.5), ("add", 2.5), ("multiply", 0.5)))
        place = self.chance.choice(sorted(value["cells"]) if name == "t" else ["0", "1", "2"])
        cell = {"address": {"x": place}, "value": operand}
        change = {"modify": {"operation": operation, "cells": [cell]}}

        def modified(value: Value) -> Value:
            old = value["cells"][place] if name == "t" else value["values"][int(place)]
            new = {"replace": operand, "add": old + operand, "multiply": old * operand}[operation]
            if name == "t":
                return _cells(value, {place: new})
            return {**value, "values": [new if at == int(place) else cell for at, cell in enumerate(value["values"])]}

        return name, change, modified


NUMBERS = ("n", "count", "x")
"""Fields that arithmetic is done on."""
FIELDS: Mapping[str, tuple[str, ...]] = {
    "n": ("assign", "arithmetic"),
    "big": ("assign",),
    "count": ("assign", "arithmetic"),
    "x": ("assign", "halve"),
    "flag": ("assign",),
    "title": ("assign",),
    "label": ("assign",),
    "tags": ("assign", "append", "drop", "set_element"),
    "nums": ("assign", "append", "drop", "set_element", "drop_element"),
    "ws": ("assign", "merge", "drop_keys", "count_key"),
    "m": ("assign", "set_key", "drop_key"),
    "s": ("assign", "set_member", "count_member"),
    "pairs": ("assign", "append", "set_member_of_element"),
    "t": ("assign", "add_cells", "drop_cells", "modify"),
    "d": ("assign", "modify"),
    "r": ("assign",),
    "pos": ("assign",),
}
"""Field → the kinds of changes that it is drawn for."""


def changed(document: Document | None, changes: list[Change]) -> Document:
    """A document after an update, which creates it where it is None: then arithmetic starts from 0."""
    after = dict(document or {})
    for path, _, change in changes:
        name = path.split("{")[0].split("[")[0].split(".")[0]
        unset = 0 if document is None and name in NUMBERS else None
        after[name] = change(after.get(name, unset))
    return after


def _is_let_through(method: str, document: Document | None, is_asked: bool, holds: bool | None, create: bool) -> bool:
    """Whether condition and `create` of an operation allow it."""
    if document is None:
        return create or not is_asked
    if is_asked:
        return bool(holds)
    return not (create and method == "POST")


def _titled(document: Document, word: str) -> bool:
    return document.get("title") == word or bool(document.get("label"))


def _below(document: Document, number: int) -> bool:
    return document.get("x") is not None and document["x"] < number and bool(document.get("m"))


def _without(value: Value, keys: list[str]) -> Value:
    return {key: weight for key, weight in (value or {}).items() if key not in keys}


def _cells(value: Value, cells: Mapping[str, float]) -> Value:
    return {**value, "cells": {**value["cells"], **cells}}
