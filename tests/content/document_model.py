"""A plain model of documents: dicts of JSON, random operations on them, and what each should make of them.

Everything is JSON, as a client sends and gets it, so that reading, logging, applying, storing and showing are all
between an operation and what is compared. Numbers stay so small that no arithmetic rounds or overflows: that has tests
of its own.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Final

from paperwasp.document.ids import DocumentId
from paperwasp.document.json_format import DocumentReader
from paperwasp.document.operations import Operation, Put, Refusal, Remove, Update
from tests.content.document_schemas import DENSE, MADE, MAPPED, PROCESSOR, TYPES, Json, variant_schema

Fields = dict[str, Json]
Change = Callable[[Json, bool], Json]
"""Value, whether it is an attribute → value. None: unset."""

READER: Final = DocumentReader(variant_schema(0).document)


# Values

KEYS: Final = ("a", "b", "c")
WORDS: Final = ("one", "two words", "Ünï", "x")


def _quarter(chance: random.Random) -> float:
    return chance.randrange(-40, 40) / 4


def _pair(chance: random.Random) -> Json:
    return {"a": chance.randrange(9)} | ({"b": chance.choice(WORDS)} if chance.random() < 0.5 else {})


def _some(chance: random.Random, value: Callable[[random.Random], Json]) -> list[Json]:
    return [value(chance) for _ in range(chance.randrange(4))]


def _entries(chance: random.Random, value: Callable[[random.Random], Json], keys: tuple[str, ...] = KEYS) -> Fields:
    return {key: value(chance) for key in chance.sample(keys, chance.randrange(len(keys) + 1))}


def _weight(chance: random.Random) -> int:
    return chance.randrange(-3, 4)


def _word(chance: random.Random) -> str:
    return chance.choice(WORDS)


def _number(chance: random.Random) -> int:
    return chance.randrange(-20, 20)


def _dense(values: list[float]) -> Json:
    return {"type": str(DENSE), "values": values}


def _mapped(cells: Mapping[str, float]) -> Json:
    return {"type": str(MAPPED), "cells": dict(cells)}


_INTS: Final = ("1", "2", "3")
RULES: Final = {
    "a in [b]": True,
    "a in [c]": False,
    "x in [1..5]": True,
    "a not in [b]": False,
    "a in [c] or x in [3..9]": True,
    "a in [b, c] and x in [7..9]": False,
}
"""Predicates, and whether they hold where a is b and x is 3."""
VALUES: Final[dict[str, Callable[[random.Random], Json]]] = {
    "title": lambda chance: chance.choice(("", *WORDS)),
    "artist": _word,
    "lyrics": lambda chance: _some(chance, _word),
    "small": _number,
    "count": _number,
    "total": _number,
    "score": _quarter,
    "weight": _quarter,
    "flag": lambda chance: chance.random() < 0.5,
    "word": lambda chance: chance.choice(("", *WORDS)),
    "link": lambda chance: chance.choice(("http://a/b?c#d", "x")),
    "blob": lambda chance: chance.choice(("AAEC", "/w==", "")),
    "place": lambda chance: {"lat": chance.randrange(-80, 80) / 4, "lng": chance.randrange(-80, 80) / 4},
    "rule": lambda chance: chance.choice(tuple(RULES)),
    "parent": lambda chance: f"id:n:thing::{chance.randrange(6)}",
    "numbers": lambda chance: _some(chance, _number),
    "tags": lambda chance: _some(chance, _word),
    "reals": lambda chance: _some(chance, _quarter),
    "votes": lambda chance: _entries(chance, _weight),
    "marks": lambda chance: _entries(chance, _weight, _INTS),
    "dense": lambda chance: _dense([_quarter(chance), _quarter(chance)]),
    "cells": lambda chance: _mapped(_entries(chance, _quarter)),
    "sizes": lambda chance: _entries(chance, _number),
    "pair": _pair,
    "pairs": lambda chance: _some(chance, _pair),
    "named": lambda chance: _entries(chance, _pair),
}


# Updates: the name and the operation as JSON writes them, and what it makes of the value


@dataclass(frozen=True)
class Step:
    """One operation of an update."""

    name: str
    operation: str
    operand: Json
    change: Change

    @property
    def field(self) -> str:
        return self.name.split("{")[0].split("[")[0].split(".")[0]


def assign(chance: random.Random, name: str) -> Step:
    value = None if chance.random() < 0.15 else VALUES[name](chance)
    return Step(name, "assign", value, lambda *_: value)


def calculate(chance: random.Random, name: str) -> Step:
    """A sum, or a change of sign: exact for all types here. A byte is only turned about, so that it fits."""
    if name == "small" or chance.random() < 0.3:
        return Step(name, "multiply", -1, lambda value, fixed: value if fixed and value is None else -(value or 0))
    amount = _quarter(chance) if name in ("score", "weight") else _number(chance)
    operation, sign = chance.choice((("increment", 1), ("decrement", -1)))
    return Step(
        name, operation, amount,
        lambda value, fixed: value if fixed and value is None else (value or 0) + sign * amount,
    )  # fmt: skip


def array_step(chance: random.Random, name: str) -> Step:
    values, place = VALUES[name](chance), chance.randrange(4)
    choice = chance.randrange(5)

    def without(value: Json, _: bool) -> Json:
        return None if value is None else value[:place] + value[place + 1 :]

    if choice == 0:
        return Step(name, "add", values, lambda value, _: (value or []) + values if values else value)
    if choice == 1:
        return Step(name, "remove", values, lambda value, _: value and [one for one in value if one not in values])
    if choice == 2:
        return Step(f"{name}[{place}]", "remove", 0, without)
    element = values[0] if values else VALUES[name](random.Random(1)) or ["x"]
    element = element[0] if isinstance(element, list) else element
    if isinstance(element, str) != (name in ("tags", "lyrics")) and name != "pairs":
        return assign(chance, name)
    if choice == 3:
        return Step(f"{name}[{place}]", "assign", element, lambda value, _: _put_at(value, place, element))
    if name == "pairs":
        number = _number(chance)
        return Step(f"pairs[{place}].a", "assign", number, lambda value, _: _put_in(value, place, number))
    operand = {"element": place, "assign": element}
    return Step(name, "match", operand, lambda value, _: _put_at(value, place, element))


def _put_at(value: Json, place: int, element: Json) -> Json:
    return value if value is None or place >= len(value) else [*value[:place], element, *value[place + 1 :]]


def _put_in(value: Json, place: int, number: int) -> Json:
    return value if value is None or place >= len(value) else _put_at(value, place, value[place] | {"a": number})


def set_step(chance: random.Random, name: str) -> Step:
    keys, flagged = (_INTS, True) if name == "marks" else (KEYS, False)
    key, weight = chance.choice(keys), _weight(chance)
    choice = chance.randrange(4)
    if choice == 0:
        added = {key: weight}
        return Step(name, "add", added, lambda value, _: _without_zero((value or {}) | added, key, flagged))
    if choice == 1:
        return Step(name, "remove", {key: 0}, lambda value, _: _without(value, key))
    if choice == 2:
        return Step(f"{name}{{{key}}}", "assign", weight, lambda value, _: (value or {}) | {key: weight})
    element = int(key) if name == "marks" else key

    def change(value: Json, _: bool) -> Json:
        if key not in (value or {}) and not flagged:
            return value
        weights = value or {}
        return _without_zero(weights | {key: weights.get(key, 0) + weight}, key, flagged)

    return Step(name, "match", {"element": element, "increment": weight}, change)


def _without(value: Json, key: str) -> Json:
    """None, or nothing, stays so."""
    return value and {other: item for other, item in value.items() if other != key}


def _without_zero(weights: Fields, key: str, flagged: bool) -> Fields:
    return _without(weights, key) if flagged and weights[key] == 0 else weights


def map_step(chance: random.Random, name: str) -> Step:
    key, number = chance.choice(KEYS), _number(chance)
    if chance.random() < 0.3:
        return Step(f"{name}{{{key}}}", "remove", 0, lambda value, _: _without(value, key))
    if name == "named":
        return Step(
            f"named{{{key}}}.a", "assign", number,
            lambda value, _: (value or {}) | {key: (value or {}).get(key, {}) | {"a": number}},
        )  # fmt: skip
    return Step(
        f"{name}{{{key}}}", "increment", number,
        lambda value, _: (value or {}) | {key: (value or {}).get(key, 0) + number},
    )  # fmt: skip


def struct_step(chance: random.Random, name: str) -> Step:
    word = _word(chance)
    return Step(f"{name}.b", "assign", word, lambda value, _: (value or {}) | {"b": word})


_CELLS: Final[dict[str, Callable[[float, float], float]]] = {
    "replace": lambda _, operand: operand,
    "add": lambda value, operand: value + operand,
    "multiply": lambda value, operand: value * operand,
}


def dense_step(chance: random.Random, name: str) -> Step:
    place, operation = chance.randrange(2), chance.choice(list(_CELLS))
    number = -1.0 if operation == "multiply" else _quarter(chance)
    cells = [{"address": {"x": str(place)}, "value": number}]

    def change(value: Json, _: bool) -> Json:
        if value is None:
            return None
        values = value["values"]
        return _dense(_put_at(values, place, _CELLS[operation](values[place], number)))

    return Step(name, "modify", {"operation": operation, "cells": cells}, change)


def cells_step(chance: random.Random, name: str) -> Step:
    key, number = chance.choice(KEYS), _quarter(chance)
    choice = chance.randrange(3)
    if choice == 0:
        return Step(
            name, "add", {"cells": {key: number}},
            lambda value, _: _mapped((value or {"cells": {}})["cells"] | {key: number}),
        )  # fmt: skip
    if choice == 1:
        return Step(
            name, "remove", {"addresses": [{"m": key}]},
            lambda value, _: None if value is None else _mapped(_without(value["cells"], key)),
        )  # fmt: skip
    operation, create = chance.choice(("replace", "add")), chance.random() < 0.5
    operand = {"operation": operation, "cells": {key: number}} | ({"create": True} if create else {})

    def change(value: Json, _: bool) -> Json:
        if value is None and not create:
            return None
        cells = (value or {"cells": {}})["cells"]
        if key not in cells and not create:
            return value
        return _mapped(cells | {key: _CELLS[operation](cells.get(key, 0.0), number)})

    return Step(name, "modify", operand, change)


STEPS: Final[dict[str, Callable[[random.Random, str], Step]]] = {
    **dict.fromkeys(("small", "count", "total", "score", "weight"), calculate),
    **dict.fromkeys(("numbers", "tags", "reals", "lyrics", "pairs"), array_step),
    **dict.fromkeys(("votes", "marks"), set_step),
    **dict.fromkeys(("sizes", "named"), map_step),
    "pair": struct_step,
    "dense": dense_step,
    "cells": cells_step,
}


# Conditions: text, and what it says of a document

CONDITIONS: Final[tuple[tuple[str, Callable[[Fields], bool]], ...]] = (
    ("thing.count == 5", lambda fields: fields.get("count") == 5),
    ("thing.count > -5", lambda fields: "count" in fields and fields["count"] > -5),
    ("thing.title == 'x' or thing.word == 'one'",
     lambda fields: fields.get("title") == "x" or fields.get("word") == "one"),
    ("thing.total < 3 and thing.score >= 0",
     lambda fields: fields.get("total", 9) < 3 and fields.get("score", -1) >= 0),
    ("thing.sizes{a} > 0", lambda fields: fields.get("sizes", {}).get("a", 0) > 0),
    ("thing.pair.a == 3", lambda fields: fields.get("pair", {}).get("a") == 3),
    ("thing.title == ''", lambda fields: fields.get("title") == ""),
    ("thing.title == null", lambda fields: "title" not in fields),
    ("id.namespace == 'n' and now() > 1000", lambda fields: True),
    ("thing and id.user == 7", lambda fields: False),
)  # fmt: skip


# Operations


@dataclass(frozen=True)
class Deed:
    """One operation in both worlds."""

    name: int
    kind: str
    fields: Fields
    steps: tuple[Step, ...] = ()
    condition: int | None = None
    create: bool = False

    def operation(self) -> Operation:
        document_id = DocumentId("n", "thing", str(self.name))
        condition = None if self.condition is None else CONDITIONS[self.condition][0]
        assert PROCESSOR is not None
        if self.kind == "put":
            fields = PROCESSOR.put(document_id, READER.read_put(self.fields))
            return Put(document_id, fields, condition, self.create)
        if self.kind == "update":
            body: dict[str, Json] = {}
            for step in self.steps:
                body.setdefault(step.name, {})[step.operation] = step.operand
            updates = PROCESSOR.update(document_id, READER.read_update(body))
            return Update(document_id, updates, self.create, condition)
        return Remove(document_id, condition)

    def refusal(self, fields: Fields | None) -> Refusal | None:
        """Why it is not applied to a document, which is absent where None."""
        if fields is None:
            return None if self.create or self.condition is None else Refusal.NO_DOCUMENT
        if self.condition is not None:
            return None if CONDITIONS[self.condition][1](fields) else Refusal.NOT_MET
        return Refusal.EXISTS if self.create and self.kind == "put" else None

    def touches(self, fields: Fields | None) -> bool:
        """Whether it does anything."""
        return self.refusal(fields) is None and (self.kind != "update" or fields is not None or self.create)

    def after(self, fields: Fields | None, attributes: frozenset[str]) -> Fields | None:
        """The document afterwards."""
        if not self.touches(fields):
            return fields
        if self.kind == "remove":
            return None
        if self.kind == "put":
            return with_made(self.fields)
        # Where the update creates the document, no attribute has a row for it: its numbers are those of a document.
        fixed = frozenset() if fields is None else attributes
        found = dict(fields or {})
        # Whole fields come before places in them, as in Vespa.
        steps = sorted(self.steps, key=lambda step: step.name != step.field)
        for name, change in (*((step.field, step.change) for step in steps), *_changes_of_made(steps)):
            found[name] = change(found.get(name), name in fixed)
            found = {name: value for name, value in found.items() if value is not None}
        return found


def with_made(fields: Fields) -> Fields:
    """A document with what its schema makes of it."""
    made = {name: each.make(fields[each.source]) for name, each in MADE.items() if each.source in fields}
    return {**{name: value for name, value in fields.items() if name not in MADE}, **made}


def _changes_of_made(steps: list[Step]) -> list[tuple[str, Change]]:
    """What steps do to the fields that are made of what they change: after other changes of whole fields what is
    assigned, and last what is done at places."""
    found: list[tuple[int, str, Change]] = []
    for step, (name, made) in product(steps, MADE.items()):
        if step.field != made.source:
            continue
        if step.operation == "assign" and step.name == step.field and step.operand is not None:
            value = made.make(step.operand)
            found.append((1, name, lambda *_, value=value: value))
        elif made.is_copy or step.operand is None or step.operation in ("increment", "decrement", "multiply"):
            found.append((0 if step.name == step.field else 2, name, step.change))
    return [(name, change) for _, name, change in sorted(found, key=lambda each: each[0])]


def shown(fields: Fields, attributes: frozenset[str]) -> Fields:
    """What document/v1 shows of a document that has these attributes: JsonSerializationHelper.java,
    document_field_retriever.cpp."""
    of_attributes = {"flag": False} if "flag" in attributes else {}
    always = {"pair"} if "blob" in attributes else {"pair", "blob"}
    return of_attributes | {
        name: value for name, value in fields.items() if name in always or value not in ("", [], {})
    }


def random_deed(chance: random.Random, names: int) -> Deed:
    """An operation on one of so many documents."""
    name, choice = chance.randrange(names), chance.random()
    condition = chance.randrange(len(CONDITIONS)) if chance.random() < 0.2 else None
    create = chance.random() < 0.2
    if choice < 0.12:
        return Deed(name, "remove", {}, (), condition)
    if choice < 0.45:
        wanted = chance.sample(list(TYPES), chance.randrange(len(TYPES) // 2))
        return Deed(name, "put", {field: VALUES[field](chance) for field in wanted}, (), condition, create)
    steps: dict[tuple[str, str], Step] = {}
    for field in chance.choices(list(TYPES), k=chance.choice((1, 1, 1, 2, 3))):
        make = STEPS.get(field, assign) if chance.random() < 0.7 else assign
        step = make(chance, field)
        # The JSON of an update groups its operations by name: only so many orders can be written.
        if not any(step.name == other for other, _ in steps) and (step.name, step.operation) not in steps:
            steps[step.name, step.operation] = step
    return Deed(name, "update", {}, tuple(steps.values()), condition, create)
