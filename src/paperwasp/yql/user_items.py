"""Where text from a user stands in the tree of a statement, until `user_text.complete` puts the parsed text there."""

from __future__ import annotations

from dataclasses import field

from paperwasp.errors import Position
from paperwasp.operators.items import Item
from paperwasp.query.annotations import DEFAULT_ANNOTATIONS, Annotations
from paperwasp.records import dataclass


@dataclass(frozen=True, slots=True)
class UserQueryItem(Item):
    """`userQuery()`: the text of the parameter `query`."""


@dataclass(frozen=True, slots=True)
class Grammar:
    """How a text is to be read, as far as it was said: the name of a query type, `raw` or `segment`, and its parts."""

    name: str = ""
    composite: str = ""
    tokenization: str = ""
    syntax: str = ""
    profile: str = ""


NO_GRAMMAR = Grammar()


@dataclass(frozen=True, slots=True)
class UserTextItem(Item):
    """`userInput(…)` and `text(…)`: a text of the query itself, or of the parameter it names."""

    text: str | None
    parameter: str | None
    grammar: Grammar = NO_GRAMMAR
    default_index: str = "default"
    annotations: Annotations = DEFAULT_ANNOTATIONS
    target_hits: int = 0
    distance: int | None = None
    """The distance of `near` and `oNear`; None: their default."""
    allow_empty: bool = False
    fields_allowed: bool = True
    """Whether `field:word` may choose another field: in `userInput`, not in `text`."""
    nfkc: bool = False
    """Whether the text is normalized before it is read."""
    position: Position | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class NonEmptyItem(Item):
    """`nonEmpty(…)`: its only child, in which no term may turn out to be empty."""

    children: tuple[Item, ...]
    position: Position | None = field(default=None, compare=False)

    def children_of(self) -> tuple[Item, ...]:
        return self.children
