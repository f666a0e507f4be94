"""What each document may be, as far as the answers to its operations say: the model of the campaign.

A document has a list of values that it may have; None: there is none. An acknowledged operation changes each of them,
one without an answer leaves the old ones beside the new ones. Where a deployment was under way, what the operation
makes of a value is worked out for the schemas before and after it.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final

from bench.crashes import application
from paperwasp.document.tensor.types import TensorType
from tests.content import document_model as model
from tests.content.document_model import Deed, Fields, Step, random_deed
from tests.content.document_schemas import TYPES, tensor

Json = Any
Values = list[Fields | None]
_MIXED: Final = TensorType.parse(application.MIXED)


def _blocks(blocks: dict[str, list[float]]) -> Json:
    return {"type": str(_MIXED), "blocks": blocks}


def _vector(chance: random.Random) -> list[float]:
    return [chance.randrange(-40, 40) / 4, chance.randrange(-40, 40) / 4]


def _mixed_step(chance: random.Random, name: str) -> Step:
    key, vector = chance.choice(model.KEYS), _vector(chance)

    def replaced(value: Json, _: bool) -> Json:
        blocks = {} if value is None else value["blocks"]
        return value if key not in blocks else _blocks(blocks | {key: [vector[0], blocks[key][1]]})

    def without(value: Json, _: bool) -> Json:
        return value and _blocks({other: item for other, item in value["blocks"].items() if other != key})

    return chance.choice((
        Step(name, "add", {"blocks": {key: vector}},
             lambda value, _: _blocks((value or {"blocks": {}})["blocks"] | {key: vector})),
        Step(name, "remove", {"addresses": [{"m": key}]}, without),
        Step(name, "modify", {"operation": "replace",
                              "cells": [{"address": {"m": key, "x": "0"}, "value": vector[0]}]}, replaced),
    ))  # fmt: skip


def _lyrics(chance: random.Random) -> Json:
    """Now and then so long that it is compressed, parsed or stored in another way."""
    size = chance.choices((0, 40_000, 300_000), (500, 5, 1))[0]
    words = [chance.choice(model.WORDS) for _ in range(chance.randrange(4))]
    return [*words, "zz " * (size // 3)] if size else words


def extend_model() -> None:
    """Adds to the model of documents what the campaign feeds beyond the tests that share it, from now on."""
    TYPES["mixed"] = tensor(_MIXED)
    model.VALUES["mixed"] = lambda chance: _blocks({key: _vector(chance) for key in chance.sample(model.KEYS, 2)})
    model.VALUES["parent"] = lambda chance: f"id:n:base::{chance.randrange(application.BASES)}"
    model.VALUES["lyrics"] = _lyrics
    model.STEPS["mixed"] = _mixed_step


def body_of(deed: Deed) -> Json:
    """The body of the request for an operation."""
    if deed.kind == "put":
        return {"fields": deed.fields}
    fields: dict[str, Json] = {}
    for step in deed.steps:
        fields.setdefault(step.name, {})[step.operation] = step.operand
    return {"fields": fields}


def parameters_of(deed: Deed) -> dict[str, str]:
    found = {} if deed.condition is None else {"condition": model.CONDITIONS[deed.condition][0]}
    return found | ({"create": "true"} if deed.create and deed.kind != "remove" else {})


@dataclass(frozen=True)
class BaseDeed:
    """An operation on a document of type `base`, whose fields are `year` and `name`."""

    name: int
    kind: str
    fields: Fields
    create: bool = False

    def after(self, fields: Fields | None) -> Fields | None:
        if self.kind == "remove":
            return None
        if self.kind == "put":
            return dict(self.fields)
        return None if fields is None and not self.create else {**(fields or {}), **self.fields}


def random_base(chance: random.Random, name: int, has_more: bool) -> tuple[BaseDeed, Json]:
    """An operation, and its body."""
    kind = chance.choices(("put", "update", "remove"), (3, 6, 1))[0]
    fields: Fields = {"year": chance.randrange(3000)}
    if chance.random() < 0.5:
        fields["name"] = chance.choice(("", "one", "two words"))
    deed = BaseDeed(name, kind, fields if kind != "remove" else {}, chance.random() < 0.5)
    fed = fields | ({"more": "more"} if has_more and chance.random() < 0.5 else {})
    return deed, {"fields": fed if kind == "put" else {key: {"assign": value} for key, value in fed.items()}}


def deed_on(chance: random.Random, names: list[int]) -> Deed:
    """A random operation on one of the documents."""
    deed = random_deed(chance, 1)
    return Deed(chance.choice(names), deed.kind, deed.fields, deed.steps, deed.condition, deed.create)


@dataclass
class State:
    """All documents, and the versions of the application that may be active."""

    things: dict[int, Values]
    bases: dict[int, Values] = field(default_factory=lambda: {name: [None] for name in range(application.BASES)})
    versions: tuple[int, ...] = ()
    wrong: list[str] = field(default_factory=list)
    """Answers that no value of the document explains."""

    def attribute_sets(self) -> list[frozenset[str]]:
        return list(dict.fromkeys(application.attributes(version) for version in self.versions))

    def done(self, deed: Deed, sets: Iterable[frozenset[str]], status: int | None) -> None:
        """Note what an operation has left. `status`: of its answer; None: there was none, or it leaves that open."""
        before = self.things[deed.name]
        applied = [deed.after(value, each) for value in before if deed.refusal(value) is None for each in sets]
        refused = [value for value in before if deed.refusal(value) is not None]
        if status is None:
            after = before + applied
        else:
            after = applied if status == 200 else refused
            if not after:
                self.wrong.append(f"{status} for {deed} of {before}")
                after = before + applied
        self.things[deed.name] = distinct(after)

    def done_to_base(self, deed: BaseDeed, status: int | None) -> None:
        before = self.bases[deed.name]
        applied = [deed.after(value) for value in before]
        self.bases[deed.name] = distinct(applied if status == 200 else before + applied)


def distinct(values: Values) -> Values:
    found: Values = []
    for value in values:
        if value not in found:
            found.append(value)
    return found
